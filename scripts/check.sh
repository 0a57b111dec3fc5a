#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, docs, supply chain.
# Installs what is missing. Stops at the first failure with a non-zero exit.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
export PATH="$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/tandem/tools/bin"

step() { printf '\n== %s\n' "$*" >&2; }

step "tools"
install_debian cc build-essential
# Tests of the phoneme front end run the real program.
install_debian espeak-ng espeak-ng
if ! cargo nextest --version >/dev/null 2>&1; then
    cargo install cargo-nextest --locked --root "${XDG_CACHE_HOME:-$HOME/.cache}/tandem/tools"
fi

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --release --locked --workspace --all-targets -- -D warnings

step "tests"
cargo nextest run --cargo-profile release --locked --workspace

step "documentation"
cargo test --release --locked --workspace --doc --quiet
RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --workspace --no-deps --quiet

if cargo deny --version >/dev/null 2>&1; then
    step "supply chain"
    cargo deny --offline check licenses bans sources
else
    step "supply chain: skipped, \`cargo install cargo-deny\` to run it"
fi
printf '\nall checks passed\n' >&2

#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, docs, supply chain.
# Installs what is missing. Stops at the first failure with a non-zero exit.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
tools="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/tools"
export PATH="$PATH:$tools/bin"

# install_tool PACKAGE: a cargo subcommand, built once into a directory of our own. Its build
# products stay apart, so that they never wait for ours.
install_tool() {
    cargo "${1#cargo-}" --version >/dev/null 2>&1 && return 0
    echo "installing $1 (a few minutes, once)" >&2
    CARGO_TARGET_DIR="$tools/build" cargo install --quiet --locked --root "$tools" "$1"
    rm -rf "$tools/build"
}

step() { printf '\n== %s\n' "$*" >&2; }

step "tools"
install_debian cc build-essential
# Tests of the phoneme front end run the real program.
install_debian espeak-ng espeak-ng
install_tool cargo-nextest
install_tool cargo-deny

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --release --locked --workspace --all-targets -- -D warnings

step "documentation"
cargo test --release --locked --workspace --doc --quiet
RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --release --locked --workspace --no-deps --document-private-items --quiet

step "supply chain"
# Advisories need a database from the network; licences, bans and sources do not.
cargo deny --offline check licenses bans sources

step "tests"
cargo nextest run --cargo-profile release --locked --workspace

step "pages in a browser"
bash scripts/browser_tests.sh

printf '\nall checks passed\n' >&2

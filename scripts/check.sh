#!/usr/bin/env bash
# Everything that must hold before a change lands. Installs what is missing.
# Stops at the first failure with a non-zero exit code.
#
#   scripts/check.sh [STEP...]     default: all steps, in the order of `steps` below
#
# Each step downloads and installs what it needs, so each one also works alone on a fresh machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh

steps=(tools words format lints documentation supply_chain advisories tests browser)

tools() {
    install_debian cc build-essential
    install_debian git git
    # Tests of the phoneme front end run the real program.
    install_debian espeak-ng espeak-ng
    # Tests of a full disk mount a small file system.
    install_debian mount mount
    install_debian umount mount
    install_component fmt
    install_component clippy
    install_tool cargo-nextest 0.9.151
    install_tool cargo-deny 0.20.2
}

words() { bash scripts/check_words.sh; }

format() { cargo fmt --all --check; }

lints() { cargo clippy --release --locked --workspace --all-targets -- -D warnings; }

documentation() {
    cargo test --release --locked --workspace --doc --quiet
    RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" \
        cargo doc --release --locked --workspace --no-deps --document-private-items --quiet
}

supply_chain() {
    # `cargo deny` reads the crates of every platform; a build downloads only those of this one.
    cargo fetch --locked --quiet
    # The fuzz targets have a lock file of their own, which nothing else checks.
    cargo fetch --locked --quiet --manifest-path fuzz/Cargo.toml
    # Advisories need a database from the network; licences, bans and sources do not.
    # `tandem licenses` prints this list.
    python3 xtask/generators/notices.py --check
    # Warnings about two versions of a crate are left out: `cargo deny check bans` shows them.
    cargo deny --offline --log-level error check licenses bans sources
}

# Known vulnerabilities. The database is a git repository of its own, which not every network reaches.
advisories() {
    if cargo deny --log-level error fetch db 2>/dev/null; then
        cargo deny --offline --log-level error check advisories
    else
        not_tested "advisories: the database cannot be fetched here; \`cargo deny check advisories\` where it can"
    fi
}

tests() { cargo nextest run --cargo-profile release --locked --workspace; }

browser() { bash xtask/tests/browser_tests.sh; }

[ $# -gt 0 ] || set -- "${steps[@]}"
for step in "$@"; do
    case " ${steps[*]} " in *" $step "*) ;; *)
        echo "error: there is no step \`$step\`; the steps are: ${steps[*]}" >&2
        exit 2
        ;;
    esac
done
begin_list
for step in "$@"; do
    printf '\n== %s\n' "${step//_/ }" >&2
    "$step"
done
printf '\nall checks passed: %s\n' "$*" >&2
end_list

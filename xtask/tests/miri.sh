#!/usr/bin/env bash
# Runs tests of `unsafe` code under Miri: the SIMD lanes, the mel kernels that use them, and the decoding of
# cache entries. Miri supports no GPU drivers or foreign allocators, so those blocks are not covered. Needs a nightly toolchain with `miri` and `rust-src`.
set -euo pipefail
cd "$(dirname "$0")/../.."
toolchain="${TANDEM_NIGHTLY:-nightly}"
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
    echo "error: Miri is missing; install it with: rustup toolchain install $toolchain --component miri,rust-src" >&2
    exit 2
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/miri}"
# Tests use temporary files and the clock of the host.
export MIRIFLAGS="-Zmiri-disable-isolation"
export PROPTEST_CASES="${PROPTEST_CASES:-4}"
# Miri has these CPU features only if they are enabled at compile time.
export RUSTFLAGS="-C target-feature=+avx2,+fma,+avx512f"
for tests in tandem-audio::mel::lanes tandem-audio::mel::padding tandem-audio::mel::tests::a_few_samples \
    tandem-data::cache::text_entry tandem-disk::fingerprint; do
    echo "== $tests" >&2
    cargo "+$toolchain" miri test --quiet -p "${tests%%::*}" --lib -- "${tests#*::}" 2>&1 | grep -E "^test result|panicked|error|FAILED"
done

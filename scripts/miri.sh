#!/usr/bin/env bash
# Runs code with `unsafe` under Miri: the vector lanes and the mel kernels made of them, and what
# surrounds the mapped files of the cache. Miri has no files mapped to memory, no GPU driver and no
# foreign allocator: those blocks are beyond it. Needs a nightly toolchain with `miri` and `rust-src`.
set -euo pipefail
cd "$(dirname "$0")/.."
toolchain="${TANDEM_NIGHTLY:-nightly}"
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
    echo "needs Miri: rustup toolchain install $toolchain --component miri,rust-src" >&2
    exit 2
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/miri}"
# Temporary files and the clock are the host's.
export MIRIFLAGS="-Zmiri-disable-isolation"
export PROPTEST_CASES="${PROPTEST_CASES:-4}"
# Vector units are there when the compiler is told so.
export RUSTFLAGS="-C target-feature=+avx2,+fma,+avx512f"
for tests in audio::mel::lanes audio::mel::padding audio::mel::tests::a_few_samples \
    cache::text_entry cache::fingerprint::tests::moving; do
    echo "== $tests" >&2
    cargo "+$toolchain" miri test --quiet -p tandem-data --lib -- "$tests" 2>&1 | grep -E "^test result|panicked|error|FAILED"
done

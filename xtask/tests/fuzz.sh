#!/usr/bin/env bash
# Fuzzes everything that reads untrusted bytes, with a memory limit. Inputs in fuzz/corpus run first.
#
#   xtask/tests/fuzz.sh [SECONDS]     default: 20 for each target
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
seconds="${1:-20}"
install_debian cc build-essential
install_tool cargo-fuzz 0.13.2
# Coverage needs unstable compiler flags. Sanitizers are off, because the fuzzed code is safe Rust.
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz"
for target in manifest config_file audio cache_index checkpoint_manifest run_record; do
    echo "== $target: $seconds s" >&2
    found="$(mktemp -d)"
    # The fuzzer writes new inputs to the first directory, which is removed; it only reads the second.
    if ! cargo fuzz run --sanitizer none "$target" "$found" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        >"$found.log" 2>&1; then
        tail -40 "$found.log" >&2
        exit 1
    fi
    grep -E "stat::(number_of_executed_units|peak_rss_mb)" "$found.log" >&2
    rm -rf "$found" "$found.log"
done

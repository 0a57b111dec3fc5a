#!/usr/bin/env bash
# Fuzzes everything that reads foreign bytes, each target for so many seconds (default 20), with
# memory capped. Inputs found earlier lie in fuzz/corpus and are always run first.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
seconds="${1:-20}"
install_debian cc build-essential
install_tool cargo-fuzz 0.13.2
# Coverage needs compiler flags that the stable compiler hides; sanitizers are not used, since safe
# code is what is fuzzed.
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz"
for target in manifest config_file audio cache_index checkpoint_manifest run_record; do
    echo "== $target: $seconds s" >&2
    found="$(mktemp -d)"
    # New inputs go to the first directory, which is thrown away; the second is only read.
    if ! cargo fuzz run --sanitizer none "$target" "$found" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        >"$found.log" 2>&1; then
        tail -40 "$found.log" >&2
        exit 1
    fi
    grep -E "stat::(number_of_executed_units|peak_rss_mb)" "$found.log" >&2
    rm -rf "$found" "$found.log"
done

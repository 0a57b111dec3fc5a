#!/usr/bin/env bash
# Registers, spills, shared memory, occupancy, bytes, operations and estimated time of the kernels of one training step, and
# the ten that cost most on a card; from what the stand-in CUDA driver has seen (tools/cuda-stand-in/kernel_report.py).
#
#   xtask/measurements/kernel_report.sh --model-size small [--shape 32x600] [--card rtx4090] [--matrix bf16]
#                                  counts a step of this size first (minutes), with so many utterances and frames (8x128)
#   xtask/measurements/kernel_report.sh [CALLS.LOG] [--card rtx4090]         of the last run of xtask/tests/cuda_tests.sh
# xtask/measurements/step_estimate.py estimates all sizes and cards without counting, and the same network in PyTorch.
set -euo pipefail
cd "$(dirname "$0")/../.."
log="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/cuda-stand-in/kernels/calls.log"
if [ "${1:-}" = --model-size ]; then
    size=$2 && shift 2
    shape=()
    if [ "${1:-}" = --shape ]; then
        rows=${2%x*} frames=${2#*x}
        shape=(--batch-size "$rows" --frames "$frames" --symbols $((frames / 5)))
        shift 2
    fi
    bash xtask/tests/cuda_tests.sh launches --model-size "$size" --steps 1 --costs "${shape[@]}" >&2
elif [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then
    log=$1 && shift
fi
[ -s "$log" ] || { echo "error: no calls in $log" >&2; echo "hint: $0 --model-size tiny" >&2; exit 2; }
exec python3 tools/cuda-stand-in/kernel_report.py "$log" "$@"

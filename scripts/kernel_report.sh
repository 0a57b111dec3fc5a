#!/usr/bin/env bash
# Registers, spills, shared memory and occupancy of every kernel that the stand-in CUDA driver has seen, with its
# launches, and the ten that keep a card least busy. Run scripts/cuda_tests.sh cuda first.
#
#   scripts/kernel_report.sh [CALLS.LOG] [--card rtx4090]
set -euo pipefail
cd "$(dirname "$0")/.."
log="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/cuda-stand-in/kernels/calls.log"
if [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then log=$1 && shift; fi
[ -s "$log" ] || { echo "error: no calls in $log" >&2; echo "hint: run scripts/cuda_tests.sh cuda first" >&2; exit 2; }
exec python3 tools/cuda-stand-in/kernel_report.py "$log" "$@"

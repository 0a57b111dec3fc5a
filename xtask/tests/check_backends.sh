#!/usr/bin/env bash
# Type-checks the program with each GPU backend alone, including backends that cannot be built here: CUDA and
# ROCm link against an LLVM that a build script downloads from GitHub, and DOCS_RS disables that download.
# Nothing is run; `xtask/tests/gpu_tests.sh` builds and runs wgpu. Arguments: the backends to check; default: all.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian cc build-essential
export DOCS_RS=1

[ $# -gt 0 ] || set -- wgpu vulkan metal cuda rocm
for backend in "$@"; do
    printf '\n== %s\n' "$backend" >&2
    began=$SECONDS
    # The profile of the GPU tests: without optimisation, since nothing is run.
    cargo check --profile gpu-tests --locked -p tandem --features "$backend"
    printf '%s: type check passed (%s s)\n' "$backend" "$((SECONDS - began))" >&2
done

#!/usr/bin/env bash
# Checks the types of the program with each GPU backend by itself, also of those that cannot be
# built here: CUDA and ROCm link against an LLVM that a build script downloads from GitHub, which
# DOCS_RS leaves out. Builds nothing that runs; `scripts/gpu_tests.sh` builds and runs wgpu.
# Arguments: the backends to check; all where there are none.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_debian cc build-essential
export DOCS_RS=1

[ $# -gt 0 ] || set -- wgpu vulkan metal cuda rocm
for backend in "$@"; do
    printf '\n== %s\n' "$backend" >&2
    began=$SECONDS
    # The GPU group's profile: nothing of it is run, so nothing is worth optimising.
    cargo check --profile gpu-tests --locked -p tandem --features "$backend"
    printf '%s: types hold (%s s)\n' "$backend" "$((SECONDS - began))" >&2
done

#!/usr/bin/env bash
# Type-checks the program with each GPU backend alone, including backends that cannot be built here: CUDA and
# ROCm link against an LLVM that a build script downloads from GitHub, and DOCS_RS disables that download.
# Also the kernels of 64-bit ARM processors (`neon`), which no other build compiles. Nothing is run; `xtask/tests/gpu_tests.sh`
# builds and runs wgpu, `xtask/tests/neon_tests.sh` runs the ARM kernels. Arguments: the backends to check; default: all.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian cc build-essential
export DOCS_RS=1

# check BACKEND. The profile of the GPU tests: without optimisation, since nothing is run.
check() {
    case $1 in
        neon)
            rustup target add aarch64-unknown-linux-gnu >&2 || { not_tested "NEON kernels: no toolchain for 64-bit ARM"; return 0; }
            # The build script of a hash function compiles C.
            install_debian aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
            cargo check --profile gpu-tests --locked -p tandem-audio --target aarch64-unknown-linux-gnu
            ;;
        *) cargo check --profile gpu-tests --locked -p tandem --features "$1" ;;
    esac
}

[ $# -gt 0 ] || set -- wgpu vulkan metal cuda rocm neon
for backend in "$@"; do
    printf '\n== %s\n' "$backend" >&2
    began=$SECONDS
    check "$backend"
    printf '%s: type check passed (%s s)\n' "$backend" "$((SECONDS - began))" >&2
done

#!/usr/bin/env bash
# Runs the tests of the mel kernels for 64-bit ARM processors (NEON), with QEMU as the processor.
# Needs the packages qemu-user and gcc-aarch64-linux-gnu, and installs them. Minutes: everything is compiled for ARM.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian qemu-aarch64 qemu-user
install_debian aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
rustup target add aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
exec cargo test --profile gpu-tests --locked -p tandem-audio --lib --target aarch64-unknown-linux-gnu -- mel:: "$@"

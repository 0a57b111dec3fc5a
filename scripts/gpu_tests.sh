#!/usr/bin/env bash
# Runs the GPU tests with feature `wgpu` on two software Vulkan devices, which are installed if they are missing.
# Arguments go to the test program; `--nocapture` shows measurements.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/software_gpus.sh
install_debian cc build-essential

exec cargo test --profile gpu-tests --locked -p tandem-model --features wgpu --test gpu -- --test-threads=1 "$@"

#!/usr/bin/env bash
# Runs the GPU tests with feature `wgpu` on two software Vulkan devices, which are installed if they are missing. Ends
# after 20 minutes (LIMIT in seconds). TANDEM_TEST_QUICK=1 trains on one placement instead of three.
# Arguments go to the test program; `--nocapture` shows measurements.
set -euo pipefail
cd "$(dirname "$0")/../.."
. xtask/tests/software_gpus.sh
install_debian cc build-essential

run=(cargo test --profile gpu-tests --locked -p tandem-model --features wgpu --test gpu)
"${run[@]}" --no-run
exec timeout "${LIMIT:-1200}" "${run[@]}" -- --test-threads=1 "$@"

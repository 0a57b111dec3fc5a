#!/usr/bin/env bash
# The GPU group of the tests: two software Vulkan devices stand in for two cards. Installs them
# where they are missing, builds with feature `wgpu`, runs the group. Arguments go to the test
# program; `--nocapture` shows the figures.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/software_gpus.sh
install_debian cc build-essential

exec cargo test --profile gpu-tests --locked -p tandem-model --features wgpu --test gpu -- --test-threads=1 "$@"

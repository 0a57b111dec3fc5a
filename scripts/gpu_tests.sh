#!/usr/bin/env bash
# The GPU group of the tests: two software Vulkan devices (Mesa's lavapipe and the SwiftShader that
# comes with Chromium) stand in for two cards. Installs them where they are missing, builds with
# feature `wgpu`, runs the group. Arguments go to the test program.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_debian cc build-essential
install_debian_file '/usr/share/vulkan/icd.d/lvp_icd.*.json' mesa-vulkan-drivers
install_debian_file '/usr/lib/chromium*/vk_swiftshader_icd.json' chromium

# These two drivers and no other: the numbers of the devices must not depend on the machine.
VK_DRIVER_FILES="$(first_file '/usr/lib/chromium*/vk_swiftshader_icd.json'):$(first_file '/usr/share/vulkan/icd.d/lvp_icd.*.json')"
export VK_DRIVER_FILES
# Kernels are tuned on drivers that nobody trains on: take the first that works.
export CUBECL_AUTOTUNE_LEVEL=minimal
# Drivers look for a display there, and complain where it is not set.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}"

exec cargo test --profile gpu-tests --locked -p tandem-model --features wgpu --test gpu -- --test-threads=1 "$@"

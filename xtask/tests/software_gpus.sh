# Sourced: provides two software GPUs. Mesa's lavapipe is a Vulkan driver that runs on the CPU. The Vulkan loader
# takes a copy of it for a second driver, and each driver has one device. Installs lavapipe if it is missing and sets
# the environment variables of the Vulkan loader and of the kernel compiler.
#
#   . xtask/tests/software_gpus.sh && tandem devices --backend wgpu --data-gpu 0 --model-gpu 1

# shellcheck source=scripts/environment.sh
. scripts/environment.sh
install_debian_file '/usr/share/vulkan/icd.d/lvp_icd.*.json' mesa-vulkan-drivers

# second_driver MANIFEST DIRECTORY: copies the driver of a manifest into a directory, writes a manifest for the
# copy, and prints its path.
second_driver() {
    local library directory=$2
    library="$(sed -n 's/.*"library_path": *"\([^"]*\)".*/\1/p' "$1")"
    # The loader searches for a path without a directory.
    [ -e "$library" ] || library="$(first_file "/usr/lib/*/$library")" || {
        echo "error: $1 names the library \`$library\`, which does not exist" >&2
        return 2
    }
    mkdir -p "$directory"
    cp --update "$library" "$directory/second_lavapipe.so"
    sed "s|\"library_path\": *\"[^\"]*\"|\"library_path\": \"$directory/second_lavapipe.so\"|" "$1" >"$directory/second_lavapipe.json"
    printf '%s' "$directory/second_lavapipe.json"
}

lavapipe="$(first_file '/usr/share/vulkan/icd.d/lvp_icd.*.json')"
# Only these two, so that the device numbers do not depend on the machine.
VK_DRIVER_FILES="$lavapipe:$(second_driver "$lavapipe" "${XDG_CACHE_HOME:-$HOME/.cache}/tandem/software-gpus")"
export VK_DRIVER_FILES
# Tuning kernels for a software driver is useless: use the first that works.
export CUBECL_AUTOTUNE_LEVEL=minimal
# Drivers look for a display there, and print a warning if it is not set.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}"

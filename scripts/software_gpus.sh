# Sourced: two GPUs without a GPU. Mesa's lavapipe, a Vulkan driver that computes on the processor,
# under two names: the loader takes the copy for another driver, and each driver has a device.
# Installs it where it is missing and sets what the Vulkan loader and the kernels' compiler read.
#
#   . scripts/software_gpus.sh && tandem devices --backend wgpu --data-gpu 0 --model-gpu 1

# shellcheck source=scripts/environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
install_debian_file '/usr/share/vulkan/icd.d/lvp_icd.*.json' mesa-vulkan-drivers

# second_driver MANIFEST FOLDER: the driver of a manifest copied into a folder, and a manifest of
# the copy, whose path is printed.
second_driver() {
    local library folder=$2
    library="$(sed -n 's/.*"library_path": *"\([^"]*\)".*/\1/p' "$1")"
    # A path without a folder is the loader's to find.
    [ -e "$library" ] || library="$(first_file "/usr/lib/*/$library")" || {
        echo "error: $1 names the library \`$library\`, which is not there" >&2
        return 2
    }
    mkdir -p "$folder"
    cp --update "$library" "$folder/second_lavapipe.so"
    sed "s|\"library_path\": *\"[^\"]*\"|\"library_path\": \"$folder/second_lavapipe.so\"|" "$1" >"$folder/second_lavapipe.json"
    printf '%s' "$folder/second_lavapipe.json"
}

lavapipe="$(first_file '/usr/share/vulkan/icd.d/lvp_icd.*.json')"
# These two and no other: the numbers of the devices must not depend on the machine.
VK_DRIVER_FILES="$lavapipe:$(second_driver "$lavapipe" "${XDG_CACHE_HOME:-$HOME/.cache}/tandem/software-gpus")"
export VK_DRIVER_FILES
# Kernels are tuned on drivers that nobody trains on: take the first that works.
export CUBECL_AUTOTUNE_LEVEL=minimal
# Drivers look for a display there, and complain where it is not set.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}"

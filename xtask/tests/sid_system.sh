# Sourced: a Debian sid system in the cache directory, for what is newer there than on the machine: LLVM 23, which the
# `cuda` build links, and Mesa 26, on which feature `vulkan` works. The Rust toolchain, the registry and the sources
# are those of the machine. Needs root and debootstrap. Made once (about 3 minutes, 1.7 GB), never changed in passing.
#
#   . xtask/tests/sid_system.sh && make_sid && in_sid cargo build --features cuda

# shellcheck source=scripts/environment.sh
. scripts/environment.sh

sid_dir="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/sid"
sid_packages=(llvm-23-dev gcc g++ libc6-dev pkg-config zlib1g-dev libzstd-dev mesa-vulkan-drivers libvulkan1
    python3-minimal)
# The version of tracel-llvm-bundler in Cargo.lock: its installer downloads nothing where it finds its marker file.
sid_llvm="tracel-llvm-$(sed -n '/^name = "tracel-llvm-bundler"$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)"

# make_sid: makes the system unless it exists. Returns 1 and says why, where it cannot be made.
make_sid() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "a Debian sid system needs root (debootstrap, chroot)" >&2
        return 1
    fi
    if ! unshare --mount true 2>/dev/null; then
        echo "a Debian sid system needs the right to mount" >&2
        return 1
    fi
    if [ ! -e "$sid_dir/made" ]; then
        install_debian debootstrap debootstrap || return 1
        echo "making a Debian sid system in $sid_dir (minutes, once)" >&2
        rm -rf --one-file-system "$sid_dir.draft"
        mkdir -p "$sid_dir.draft"
        { debootstrap --variant=minbase sid "$sid_dir.draft" &&
            DEBIAN_FRONTEND=noninteractive chroot "$sid_dir.draft" \
                apt-get install -y -qq --no-install-recommends "${sid_packages[@]}" &&
            chroot "$sid_dir.draft" apt-get clean; } >"$sid_dir.draft.log" 2>&1 || {
            tail -5 "$sid_dir.draft.log" >&2
            echo "the Debian sid system could not be made; see $sid_dir.draft.log" >&2
            return 1
        }
        touch "$sid_dir.draft/made"
        rm -rf --one-file-system "$sid_dir"
        mv "$sid_dir.draft" "$sid_dir"
    fi
    make_llvm_bundle
}

# make_llvm_bundle: the directory in which the bundle's installer looks, around Debian's LLVM. Linked dynamically,
# so there are no libraries to name beside LLVM itself.
make_llvm_bundle() {
    local bundle="$sid_dir/data/tracel/$sid_llvm"
    # Written once: cargo builds everything above LLVM again when the marker is newer.
    [ ! -e "$bundle/.tracel-llvm-installed" ] || return 0
    mkdir -p "$bundle/bin"
    ln -sfn /usr/lib/llvm-23/lib "$bundle/lib"
    ln -sfn /usr/lib/llvm-23/include "$bundle/include"
    cat >"$bundle/bin/llvm-config" <<'SCRIPT'
#!/bin/sh
# Called as `llvm-config --link-static WHAT`; the static libraries are not there.
[ "$1" != --link-static ] || shift
case $1 in
    --libs | --libnames) echo ;;
    --system-libs) echo -lLLVM-23 ;;
    *) exec /usr/bin/llvm-config-23 "$@" ;;
esac
SCRIPT
    chmod +x "$bundle/bin/llvm-config"
    touch "$bundle/.tracel-llvm-installed"
}

# in_sid COMMAND...: runs a command there, in this directory. The mounts end with the command.
in_sid() {
    local toolchain cargo_home=${CARGO_HOME:-$HOME/.cargo} target="$CARGO_TARGET_DIR/sid"
    toolchain="$(rustc --print sysroot)"
    mkdir -p "$target" "$cargo_home/registry"
    # shellcheck disable=SC2016
    unshare --mount bash -euc '
        root=$1 sources=$2 target=$3 toolchain=$4 cargo_home=$5
        shift 5
        bind() { mkdir -p "$root$1"; mount --bind "$1" "$root$1"; }
        mount --make-rprivate /
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/tmp"
        bind "$sources"; bind "$target"; bind "$toolchain"; bind "$cargo_home/registry"
        for further in ${SID_BIND:-}; do bind "$further"; done
        exec chroot "$root" /usr/bin/env HOME=/root CARGO_HOME="$cargo_home" CARGO_TARGET_DIR="$target" \
            XDG_DATA_HOME=/data XDG_RUNTIME_DIR=/tmp XDG_CACHE_HOME= \
            PATH="$toolchain/bin:/usr/local/bin:/usr/bin:/bin" \
            sh -euc "cd \"\$0\"; exec \"\$@\"" "$sources" "$@"
    ' in_sid "$sid_dir" "$PWD" "$target" "$toolchain" "$cargo_home" "$@"
}

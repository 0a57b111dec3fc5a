# Sourced by the other scripts: finds the toolchain and keeps build products out of the tree.
# Sets CARGO_TARGET_DIR so that a fresh clone reuses the dependencies of an earlier one.

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/target}"

if ! command -v cargo >/dev/null 2>&1; then
    echo "error: no Rust toolchain found (\`cargo\` is not on the PATH)" >&2
    echo "hint: install Rust 1.95 or newer with rustup, open a new shell, and run this again" >&2
    exit 2
fi

# install_debian COMMAND PACKAGE...: installs Debian packages when COMMAND is missing.
install_debian() {
    local command=$1
    shift
    command -v "$command" >/dev/null 2>&1 && return 0
    echo "installing $* (for \`$command\`)" >&2
    local as_root=""
    [ "$(id -u)" -eq 0 ] || as_root="sudo"
    if command -v apt-get >/dev/null 2>&1; then
        $as_root apt-get update -qq >/dev/null && $as_root apt-get install -y -qq "$@" >/dev/null
    fi
    command -v "$command" >/dev/null 2>&1 && return 0
    echo "error: \`$command\` is missing and could not be installed" >&2
    echo "hint: install the package(s) $* of your system, then run this again" >&2
    return 2
}

# first_file PATTERN: the first file of that name.
first_file() {
    local found
    # The pattern is meant to be one.
    # shellcheck disable=SC2086
    for found in $1; do
        [ -e "$found" ] && printf '%s' "$found" && return 0
    done
    return 1
}

# install_debian_file PATTERN PACKAGE...: the same for packages that bring a file and no command.
install_debian_file() {
    local pattern=$1
    shift
    first_file "$pattern" >/dev/null && return 0
    echo "installing $* (for \`$pattern\`)" >&2
    local as_root=""
    [ "$(id -u)" -eq 0 ] || as_root="sudo"
    if command -v apt-get >/dev/null 2>&1; then
        $as_root apt-get update -qq >/dev/null && $as_root apt-get install -y -qq "$@" >/dev/null
    fi
    first_file "$pattern" >/dev/null && return 0
    echo "error: \`$pattern\` is missing and could not be installed" >&2
    echo "hint: install the package(s) $* of your system, then run this again" >&2
    return 2
}

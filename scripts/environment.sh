# Sourced by the other scripts: finds the toolchain, sets CARGO_TARGET_DIR and installs missing programs.
#
# Build products stay outside the tree, so that a fresh clone reuses the dependencies of an earlier one.
# With INSTALL=check in the environment the install functions change nothing. They check instead that the package
# exists, whether or not it is installed; `scripts/fresh_machine.sh --cheap` uses this.

# not_tested WHAT: says what could not be tested, and adds it to the list that check.sh and CI show at their end.
not_tested() {
    echo "NOT TESTED: $1" >&2
    [ -z "${TANDEM_NOT_TESTED:-}" ] || echo "NOT TESTED: $1" >>"$TANDEM_NOT_TESTED"
}

# begin_list: begins the list of what was not tested, unless a caller has one.
begin_list() {
    [ -z "${TANDEM_NOT_TESTED:-}" ] || return 0
    TANDEM_NOT_TESTED="$(mktemp)"
    export TANDEM_NOT_TESTED
    list_is_ours=1
}

# end_list: shows the list, and how long it is, where it was begun here.
end_list() {
    [ "${list_is_ours:-}" = 1 ] || return 0
    local count
    count=$(sort -u "$TANDEM_NOT_TESTED" | wc -l)
    sort -u "$TANDEM_NOT_TESTED" >&2
    printf '%s could not be tested here\n' "$count" >&2
    rm -f "$TANDEM_NOT_TESTED"
}

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/target}"
tools_dir="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/tools"
export PATH="$PATH:$tools_dir/bin"

if ! command -v cargo >/dev/null 2>&1; then
    echo "error: no Rust toolchain found (\`cargo\` is not on the PATH)" >&2
    echo "hint: install Rust 1.95 or newer with rustup, open a new shell, and run this again" >&2
    exit 2
fi

# install_debian COMMAND PACKAGE...: installs Debian packages when COMMAND is missing.
install_debian() {
    local command=$1
    shift
    install_packages "command -v $command" "$command" "$@"
}

# install_debian_file PATTERN PACKAGE...: the same for packages that contain a file and no command.
install_debian_file() {
    local pattern=$1
    shift
    install_packages "first_file '$pattern'" "$pattern" "$@"
}

# install_packages TEST NAME PACKAGE...: installs Debian packages unless TEST succeeds, and runs TEST again.
install_packages() {
    local test=$1 name=$2 as_root=""
    shift 2
    [ "$(id -u)" -eq 0 ] || as_root="sudo"
    if [ "${INSTALL:-}" = check ]; then
        # A fresh machine may have no package lists yet.
        apt-get install --simulate -qq "$@" >/dev/null 2>&1 || $as_root apt-get update -qq >/dev/null
        apt-get install --simulate -qq "$@" >/dev/null || return 2
        echo "can be installed: $* (for \`$name\`)" >&2
        return 0
    fi
    eval "$test" >/dev/null 2>&1 && return 0
    echo "installing $* (for \`$name\`)" >&2
    if command -v apt-get >/dev/null 2>&1; then
        $as_root apt-get update -qq >/dev/null && $as_root apt-get install -y -qq "$@" >/dev/null
    fi
    eval "$test" >/dev/null 2>&1 && return 0
    echo "error: \`$name\` is missing and could not be installed" >&2
    echo "hint: install the package(s) $* of your system, then run this again" >&2
    return 2
}

# first_file PATTERN: prints the first file that matches.
first_file() {
    local found
    # Word splitting expands the pattern.
    # shellcheck disable=SC2086
    for found in $1; do
        [ -e "$found" ] && printf '%s' "$found" && return 0
    done
    return 1
}

# install_tool PACKAGE VERSION: builds a cargo subcommand once, unless some version of it is installed.
# The version is fixed because a newer one may need a newer compiler.
install_tool() {
    if [ "${INSTALL:-}" = check ]; then
        # Outside of the workspace: inside, cargo would answer from the lock file.
        (cd / && cargo info --quiet "$1@$2") >/dev/null || return 2
        echo "can be installed: $1 $2" >&2
        return 0
    fi
    cargo "${1#cargo-}" --version >/dev/null 2>&1 && return 0
    echo "installing $1 $2 (a few minutes, once)" >&2
    # A build directory of its own, so that no other cargo command waits for its lock.
    CARGO_TARGET_DIR="$tools_dir/build" cargo install --quiet --locked --root "$tools_dir" "$1@$2"
    rm -rf "$tools_dir/build"
}

# install_component COMPONENT: a part of the toolchain that rustup's minimal profile leaves out.
install_component() {
    cargo "$1" --version >/dev/null 2>&1 && return 0
    if [ "${INSTALL:-}" != check ] && command -v rustup >/dev/null 2>&1; then
        rustup component add "$([ "$1" = fmt ] && echo rustfmt || echo "$1")" >&2
    fi
    cargo "$1" --version >/dev/null 2>&1 && return 0
    echo "error: \`cargo $1\` is missing" >&2
    echo "hint: install it with your Rust toolchain, then run this again" >&2
    return 2
}

# find_tandem: sets `tandem` to $TANDEM, or to the program that it builds.
find_tandem() {
    tandem=${TANDEM:-$CARGO_TARGET_DIR/release/tandem}
    if [ -z "${TANDEM:-}" ]; then
        install_debian cc build-essential
        cargo build --release --quiet --locked -p tandem
    fi
    [ -x "$tandem" ] || { echo "error: no program at $tandem" >&2; exit 2; }
}

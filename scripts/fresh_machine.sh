#!/usr/bin/env bash
# Runs the two commands of the README as on a machine that has never seen this project: a fresh clone of
# the last commit; empty home, cargo home, cache and build directories; and none of the cargo subcommands
# that the scripts install themselves. Only the Rust toolchain is reused, and the system's packages.
#
#   scripts/fresh_machine.sh             both commands, with the time and the result of each (half an hour or more)
#   scripts/fresh_machine.sh --cheap     what downloads and installs, without building the workspace (a minute or two; CI)
#
# Needs Debian or Ubuntu, git, network, and the right to install packages. Removes everything at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
case "${1:-}" in '' | --cheap) ;; *) sed -n '2,10p' "$0" >&2; exit 2 ;; esac
command -v apt-get >/dev/null 2>&1 || { echo "error: needs Debian or Ubuntu (\`apt-get\`)" >&2; exit 2; }
install_debian git git

fresh=$(mktemp -d "${TMPDIR:-/tmp}/tandem-fresh.XXXXXX")
# The registry's sources are read-only.
trap 'chmod -R u+w "$fresh" && rm -rf "$fresh"' EXIT
mkdir -p "$fresh"/{bin,home,cargo,cache,data,config,tmp}
# A test runs the program as another user, who must be able to enter.
chmod 755 "$fresh"
for program in cargo rustc rustdoc rustup rustfmt cargo-fmt cargo-clippy clippy-driver; do
    ! found=$(command -v "$program") || ln -s "$found" "$fresh/bin/$program"
done
rustup_home=${RUSTUP_HOME:-$HOME/.rustup}
# Proxies and certificates belong to the network, not to an earlier run.
network=$(env | grep -E '^([a-zA-Z]+_proxy|[A-Z]+_PROXY|SSL_CERT_[A-Z]+|CARGO_(HTTP|NET|SOURCE)_[A-Z0-9_]+|RUSTUP_(TOOLCHAIN|AUTO_INSTALL))=' || true)
mapfile -t network <<<"$network"
[ -n "${network[0]}" ] || network=()

# in_fresh COMMAND...: runs a command in the clone with nothing but the fresh directories.
in_fresh() {
    (cd "$fresh/clone" && env -i "${network[@]}" PATH="$fresh/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
        HOME="$fresh/home" CARGO_HOME="$fresh/cargo" RUSTUP_HOME="$rustup_home" TMPDIR="$fresh/tmp" \
        XDG_CACHE_HOME="$fresh/cache" XDG_DATA_HOME="$fresh/data" XDG_CONFIG_HOME="$fresh/config" \
        LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "${mode[@]}" "$@" </dev/null)
}

mode=()
results=()
# report NAME COMMAND...: runs a command in the clone and adds its time and result to the summary.
report() {
    local began=$SECONDS code=0 name=$1
    shift
    printf '\n#### %s\n' "$name" >&2
    in_fresh "$@" || code=$?
    results+=("$(printf '%-8s %5s s  %s' "$([ "$code" = 0 ] && echo passed || echo "exit $code")" "$((SECONDS - began))" "$name")")
    return "$code"
}

# Programs that tests start by name must be part of every Debian system or have an install line.
check_programs() {
    local program missing=0
    for program in $(git grep -ohP 'Command::new\("\K[a-z][a-z0-9_-]*(?="\))' -- 'crates/*/tests/*' | sort -u); do
        ! grep -qE "^ *install_debian $program " scripts/*.sh xtask/*/*.sh || continue
        ! dpkg-query -S "*/bin/$program" 2>/dev/null | sed -nE '/^diversion/d; s/: .*//p' | tr -d , | xargs -r dpkg-query -W -f '${Essential}\n' |
            grep -q yes || continue
        echo "error: tests start \`$program\`, which a minimal Debian may not have; add an \`install_debian\` line" >&2
        missing=1
    done
    return "$missing"
}

git diff --quiet HEAD || echo "note: uses the last commit; uncommitted changes are left out" >&2
git clone --quiet --no-hardlinks . "$fresh/clone"
failed=0
if [ "${1:-}" = --cheap ]; then
    check_programs || failed=1
    for script in scripts/*.sh xtask/*/*.sh .ci/run; do
        in_fresh bash -n "$script" || failed=1
    done
    # Building cargo-deny takes minutes: the one of this machine is used, and installed where it is missing.
    eval "$(grep -E '^ *install_tool cargo-deny ' scripts/check.sh)"
    ln -s "$(command -v cargo-deny)" "$fresh/bin/cargo-deny"
    mode=(INSTALL=check)
    report "every install line of the scripts" bash -euc ". scripts/environment.sh
        $(sed -nE 's/^ *(install_(debian|debian_file|tool|component) [^"]*)$/\1 || exit/p' scripts/*.sh xtask/*/*.sh | sort -u)" || failed=1
    report "supply chain" bash scripts/check.sh supply_chain || failed=1
else
    report "bash scripts/demo.sh" bash scripts/demo.sh || failed=1
    for sound in english persian; do
        [ -s "$fresh/clone/tandem-demo/$sound.wav" ] || { echo "error: the demo left no $sound.wav" >&2; failed=1; }
    done
    report "bash scripts/check.sh" bash scripts/check.sh || failed=1
fi
printf '\n' >&2
printf '%s\n' "${results[@]}"
[ "$failed" = 0 ] || { echo "FAILED on a fresh machine" >&2; exit 1; }

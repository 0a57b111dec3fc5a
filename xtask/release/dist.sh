#!/usr/bin/env bash
# Builds what users install, and tests each part as a user would meet it.
#
#   cargo xtask dist [--quick]     --quick: the profile `release` instead of `dist`, for a test of this script
#
# Writes into target directory `dist/`: an archive with the program, a Debian package, the Python wheel, a bill of
# materials (CycloneDX), the container file, and checksums of all of them. Builds for this machine's system only: the
# Debian package and the tag of the wheel name the version of the C library that they need. The container file is not
# built here: that needs a container engine.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
profile=dist
[ "${1:-}" != --quick ] || profile=release
install_debian cc build-essential
install_debian objdump binutils
install_debian dpkg-deb dpkg
install_debian python3 python3 python3-venv
install_tool cargo-cyclonedx 0.5.9

version=$(sed -nE 's/^version = "(.*)"/\1/p' Cargo.toml | head -n 1)
machine=$(uname -m)
out=$CARGO_TARGET_DIR/dist
work=$(mktemp -d "${TMPDIR:-/tmp}/tandem-dist.XXXXXX")
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"
# Files in archives have the time of the commit, so that the same commit gives the same archive.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

say() { printf '\n== %s\n' "$*" >&2; }

say "the program (profile $profile)"
cargo build --profile "$profile" --locked -p tandem
tree=$work/tandem-$version-$machine-linux
mkdir -p "$tree/completions" "$tree/man"
install -m 755 "$CARGO_TARGET_DIR/$profile/tandem" "$tree/tandem"
strip "$tree/tandem"
cp README.md README.fa.md LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$tree/"
cp crates/tandem-text/pronunciation/LICENSE-CMUDICT crates/tandem-text/pronunciation/LICENSE-FARSDAT "$tree/"
for shell in bash zsh fish; do "$tree/tandem" completions "$shell" >"$tree/completions/tandem.$shell"; done
"$tree/tandem" man "$tree/man" >/dev/null
libc=$(objdump -T "$tree/tandem" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -V | tail -n 1)

say "archive"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$work" \
    -czf "$out/$(basename "$tree").tar.gz" "$(basename "$tree")"

say "Debian package (needs libc6 $libc or newer)"
package=$work/deb
mkdir -p "$package/DEBIAN" "$package/usr/bin" "$package/usr/share/doc/tandem" \
    "$package/usr/share/bash-completion/completions"
install -m 755 "$tree/tandem" "$package/usr/bin/tandem"
cp "$tree"/LICENSE-* "$tree/README.md" "$package/usr/share/doc/tandem/"
cp "$tree/completions/tandem.bash" "$package/usr/share/bash-completion/completions/tandem"
cat >"$package/DEBIAN/control" <<CONTROL
Package: tandem
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: Tandem maintainers <maintainers@users.noreply.example>
Depends: libc6 (>= $libc)
Section: sound
Priority: optional
Installed-Size: $(du -sk "$package/usr" | cut -f1)
Description: trains text-to-speech voices so that the GPU never waits
 One program that prepares a speech corpus, trains a voice on it and speaks.
CONTROL
dpkg-deb --root-owner-group --build "$package" "$out/tandem_${version}_$(dpkg --print-architecture).deb" >/dev/null

say "Python wheel"
tools="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/python"
if ! "$tools/bin/maturin" --version >/dev/null 2>&1; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
fi
# maturin reads the symbols of the library and names the oldest system that has them: `manylinux_2_34` or what it is.
"$tools/bin/maturin" build --release --locked --quiet --manifest-path crates/tandem-python/Cargo.toml \
    --interpreter python3 --out "$out"

say "bill of materials, container file"
# It writes beside the manifest.
CARGO_NET_OFFLINE=true cargo cyclonedx --quiet --format json --manifest-path crates/tandem/Cargo.toml \
    --override-filename tandem-bill-of-materials
mv crates/tandem/tandem-bill-of-materials.json "$out/"
find crates xtask -name tandem-bill-of-materials.json -delete
cp xtask/release/Containerfile "$out/"

say "tests of each part"
# speaks PROGRAM: it must train two steps on the built-in corpus and speak, in an empty home.
speaks() {
    local home=$work/home
    rm -rf "$home"
    mkdir -p "$home"
    (
        cd "$home"
        export HOME=$home XDG_CACHE_HOME=$home/cache
        "$1" --version | grep -F "$version" >/dev/null
        "$1" train --train-data demo --model-size micro --max-steps 2 --checkpoint-dir run 2>/dev/null >&2
        "$1" synth --checkpoint run --text "hello there" -o hello.wav 2>/dev/null >&2
        [ -s hello.wav ]
    )
}
mkdir "$work/unpacked" "$work/installed"
tar -xzf "$out"/tandem-*.tar.gz -C "$work/unpacked"
speaks "$work/unpacked/$(basename "$tree")/tandem"
dpkg-deb -x "$out"/tandem_*.deb "$work/installed"
speaks "$work/installed/usr/bin/tandem"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$out"/*.whl
(cd "$work" && "$work/venv/bin/python" -c 'import tandem; tandem.Loader; tandem.Voice')
"$work/venv/bin/python" - "$out/tandem-bill-of-materials.json" <<'PYTHON'
import json, sys
parts = json.load(open(sys.argv[1]))["components"]
names = {part["name"] for part in parts}
assert {"burn", "symphonia", "clap"} <= names, "the bill of materials lacks known dependencies"
print(f"bill of materials: {len(parts)} components", file=sys.stderr)
PYTHON

(cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
say "in $out"
ls -l "$out" >&2

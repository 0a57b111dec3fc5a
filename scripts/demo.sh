#!/usr/bin/env bash
# Builds Tandem, then prepares, trains, evaluates and synthesizes on the built-in demo corpus. Arguments go to
# `tandem demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_debian cc build-essential
program=$CARGO_TARGET_DIR/release/tandem
[ -x "$program" ] || echo "building Tandem: 3 to 10 minutes on two cores the first time, seconds later" >&2
cargo build --release --locked -p tandem
exec "$program" demo "$@"

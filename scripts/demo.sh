#!/usr/bin/env bash
# Builds Tandem, then prepares, trains, evaluates and synthesizes on the built-in demo corpus. Arguments go to
# `tandem demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_debian cc build-essential
exec cargo run --release --quiet --locked -p tandem -- demo "$@"

#!/usr/bin/env bash
# A fault at every disk operation of preparing and training: SIGKILL before it, or an error as from a full or a broken disk.
# Takes about half an hour. Tests take some of the operations at random; TANDEM_DISK_POINTS_SEED repeats a choice.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
exec cargo test --release --locked -p tandem --test disk_points -- --ignored --nocapture "$@"

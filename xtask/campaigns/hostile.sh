#!/usr/bin/env bash
# The whole hostile campaign: hundreds of wrong arguments, files, texts and variables against the real program, each with 6 GB
# of address space and a time limit. No case may end by a signal, panic, hang, or fail without a `hint:`.
# Tests run a random part of it; TANDEM_HOSTILE_SEED repeats the part of a failed test.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
exec cargo test --release --locked -p tandem --test hostile -- --include-ignored --nocapture "$@"

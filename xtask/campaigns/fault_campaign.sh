#!/usr/bin/env bash
# Disturbs training runs at random moments: recordings, cache and run directory are deleted, truncated, replaced,
# stalled and renamed, the disk fails, and the process is stopped, terminated, killed and resumed. Each run must end
# like an undisturbed one that skipped the same rows. The test suite does the same with a few faults.
#
#   xtask/campaigns/fault_campaign.sh [FAULTS]     default: 100 faults
#
# TANDEM_FAULT_SEED repeats a campaign: its seed is the first line of the output.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian cc build-essential
TANDEM_FAULTS=${1:-100} exec cargo test --release --locked -p tandem --test fault_campaign -- --nocapture

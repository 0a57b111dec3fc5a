#!/usr/bin/env bash
# Runs the browser tests: the HTML report, the dashboard and the speech page in headless Chromium, which is installed if it is
# missing. Arguments go to the test program.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian cc build-essential
install_debian chromium chromium

exec cargo test --release --locked -p tandem --test browser -- --ignored --test-threads=1 "$@"

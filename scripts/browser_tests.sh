#!/usr/bin/env bash
# The browser group of the tests: the HTML report and the live page in headless Chromium. Installs it
# where it is missing, then runs the group. Arguments go to the test program.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_debian cc build-essential
install_debian chromium chromium

exec cargo test --release --locked -p tandem --test browser -- --ignored --test-threads=1 "$@"

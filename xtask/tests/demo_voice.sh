#!/usr/bin/env bash
# Runs the demo from start to end and checks that a speech recogniser understands its voice: xtask/tests/intelligibility.py.
# Takes the minutes of the demo and about one more.
#
#   xtask/tests/demo_voice.sh [RUN_DIRECTORY]     default: a temporary directory; a finished run is only checked again
#
# TANDEM names the program, otherwise it is built. BOUND is the largest ratio of word errors (1.5), STEPS the number of
# training steps (the demo's own).
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh

# python_with_pocketsphinx: sets `python` to one that has the packages of the recogniser.
python_with_pocketsphinx() {
    install_debian python3 python3
    python=python3
    "$python" -c "import pocketsphinx, numpy, scipy, soundfile" 2>/dev/null && return 0
    install_debian_file "/usr/lib/python3*/ensurepip/__init__.py /usr/local/lib/python3*/ensurepip/__init__.py" python3-venv
    local home="$tools_dir/intelligibility"
    python="$home/bin/python"
    [ "${INSTALL:-}" = check ] && return 0
    "$python" -c "import pocketsphinx, numpy, scipy, soundfile" 2>/dev/null && return 0
    echo "installing pocketsphinx, numpy, scipy and soundfile into $home" >&2
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet "pocketsphinx==5.1.1" numpy scipy soundfile
}

python_with_pocketsphinx
find_tandem
run=${1:-$(mktemp -d)/demo}
[ $# -gt 0 ] || trap 'rm -rf "$(dirname "$run")"' EXIT
[ -e "$run/english.wav" ] || "$tandem" demo --out "$run" ${STEPS:+--steps "$STEPS"}
"$python" xtask/tests/intelligibility.py --tandem "$tandem" --checkpoint "$run" --bound "${BOUND:-1.5}" --json "$run/intelligibility.json"

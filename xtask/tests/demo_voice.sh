#!/usr/bin/env bash
# Runs the demo from start to end and checks that a speech recogniser understands its English: it speaks the 40 sentences that the
# corpus `demo-human` holds back, and gets at most BOUND times as many words wrong as the recordings of the same sentences
# (xtask/measurements/judge_speech.py, which also checks that the recogniser does not understand its controls). Persian is not
# judged: no recogniser for it is a package of this size. Takes the minutes of the demo and about one more.
#
#   xtask/tests/demo_voice.sh [RUN_DIRECTORY]     default: a temporary directory; a finished run is only checked again
#
# TANDEM names the program, otherwise it is built. BOUND is the largest ratio of word errors (5; the aim is 2, docs/training.md has
# what was measured), STEPS the number of training steps (the demo's own).
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh

# python_with_recogniser: sets `python` to one that has the packages of the recogniser.
python_with_recogniser() {
    install_debian python3 python3
    python=python3
    "$python" -c "import moonshine_voice, numpy, soundfile" 2>/dev/null && return 0
    install_debian_file "/usr/lib/python3*/ensurepip/__init__.py /usr/local/lib/python3*/ensurepip/__init__.py" python3-venv
    local home="$tools_dir/moonshine"
    python="$home/bin/python"
    [ "${INSTALL:-}" = check ] && return 0
    "$python" -c "import moonshine_voice, numpy, soundfile" 2>/dev/null && return 0
    echo "installing moonshine-voice, numpy and soundfile into $home" >&2
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet "moonshine-voice==0.1.0" numpy soundfile
}

python_with_recogniser
find_tandem
run=${1:-$(mktemp -d)/demo}
[ $# -gt 0 ] || trap 'rm -rf "$(dirname "$run")"' EXIT
[ -e "$run/english.wav" ] || "$tandem" demo --out "$run" ${STEPS:+--steps "$STEPS"}
corpus=crates/tandem/demo-human
mkdir -p "$run/heard/recordings" "$run/heard/voice"
sed -n 's#^en/\([^|]*\)|[^|]*|\([^|]*\)|.*#\1|\2#p' "$corpus/metadata_eval.csv" >"$run/heard/rows.csv"
while IFS='|' read -r id text; do
    cp "$corpus/wavs/en/$id.ogg" "$run/heard/recordings/"
    "$tandem" synth --checkpoint "$run" --speaker kathleen --language en --text "$text" -o "$run/heard/voice/$id.wav" >/dev/null 2>&1
done <"$run/heard/rows.csv"
"$python" xtask/measurements/judge_speech.py --no-mos --bound "${BOUND:-5}" --json "$run/heard/errors.json" "$run/heard/rows.csv" \
    "recordings=$run/heard/recordings" "voice=$run/heard/voice"

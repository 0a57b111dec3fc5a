#!/usr/bin/env bash
# Exports small voices and runs them with the programs they are for: ONNX Runtime (numbers against `tandem synth`), the
# checker of the `onnx` package, and `piper`, all from the Python package index. A few minutes with a warm build directory.
#
#   xtask/tests/export_tests.sh                          trains two small voices first
#   xtask/tests/export_tests.sh RUN...                   the same checks on other runs on the demo corpus
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian cc build-essential
install_debian python3 python3 python3-venv
install_debian espeak-ng espeak-ng
venv="${XDG_CACHE_HOME:-$HOME/.cache}/tandem/export-venv"
if ! "$venv/bin/python" -c 'import numpy, onnx, onnxruntime, piper' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check numpy onnx onnxruntime piper-tts
fi
find_tandem
room=$(mktemp -d "${TMPDIR:-/tmp}/tandem-export.XXXXXX")
trap 'rm -rf "$room"' EXIT

runs=("$@")
if [ ${#runs[@]} = 0 ]; then
    corpus=(--train-data demo --cache-dir "$room/cache" --cache-dataset)
    "$tandem" train "${corpus[@]}" --backend cpu --batch-size 8 --max-steps 60 --checkpoint-dir "$room/plain" 2>/dev/null
    cp -r "$room/plain" "$room/neural"
    "$tandem" train-vocoder "${corpus[@]}" --batch-size 4 --max-steps 30 --checkpoint-dir "$room/vocoder" 2>/dev/null
    "$tandem" attach-vocoder --checkpoint "$room/neural" --vocoder "$room/vocoder"
    runs=("$room/neural" "$room/plain")
fi
number=0
for run in "${runs[@]}"; do
    number=$((number + 1))
    out=$room/out$number
    export_voice() { "$tandem" export --checkpoint "$run" -o "$out" --check --python "$venv/bin/python" "$@"; }
    export_voice --format onnx --name all
    # Speakers of the demo corpus; a Piper voice has one language.
    export_voice --format piper --name en --speaker emma --speaker henry
    export_voice --format piper --name fa --speaker mina
    "$venv/bin/python" xtask/tests/check_export.py "$out"/{all,en,fa}.onnx
    "$venv/bin/piper" -m "$out/en.onnx" -s 1 -f "$out/en.wav" -- "Good morning, Anna. It is 7!"
    "$venv/bin/piper" -m "$out/fa.onnx" -f "$out/fa.wav" -- "آن روز هوا آفتابی بود."
    ls -l "$out"/*.wav >&2
done
echo "the exported voices passed" >&2

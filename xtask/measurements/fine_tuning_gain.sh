#!/usr/bin/env bash
# Shows what fine-tuning gains: two minutes of a new speaker, from a voice of ten other speakers and from new weights, for
# the same number of steps. All speakers are synthetic (xtask/generators/make_speakers_corpus.py).
#
# In: nothing. Out: mel-cepstral distortion on held-out sentences of the new speaker, for both. Exit code 1 if fine-tuning
# is not better. About ten minutes on one core.
#
#     bash xtask/measurements/fine_tuning_gain.sh [STEPS_OF_THE_VOICE] [STEPS]
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
install_debian espeak-ng espeak-ng
install_debian flite flite
voice_steps="${1:-400}" steps="${2:-150}"
[ -n "${TANDEM:-}" ] || cargo build --release --locked -p tandem
tandem="${TANDEM:-$CARGO_TARGET_DIR/release/tandem}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

make_corpus() { python3 xtask/generators/make_speakers_corpus.py --out "$work/$1" "${@:2}"; }
make_corpus many --speakers 10 --without flite-slt --sentences 30
make_corpus new --only flite-slt --seconds 120

train() {
    "$tandem" train --train-data "$work/$1" --checkpoint-dir "$work/$2" --languages en --batch-size 8 --cache-dataset \
        --sample-every 100000 "${@:3}" >"$work/$2.log" 2>&1 || { cat "$work/$2.log" >&2; exit 2; }
}
# The flat start must end within the run.
train many voice --max-steps "$voice_steps" --align-flat-start $((voice_steps * 3 / 8))
train new tuned --max-steps "$steps" --from "$work/voice"
train new scratch --max-steps "$steps" --align-flat-start $((steps / 2))
grep -A 4 '^fine-tuning' "$work/tuned.log"

distortion() {
    "$tandem" evaluate --checkpoint "$work/$1" --corpus "$work/new" --vocoder griffin-lim --json 2>/dev/null |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["all"]["distortion"])' || true
}
tuned="$(distortion tuned)" scratch="$(distortion scratch)"
echo "distortion on held-out sentences after $steps steps: $tuned dB from the voice, $scratch dB from new weights"
python3 -c 'import sys; sys.exit(0 if float(sys.argv[1]) < float(sys.argv[2]) else 1)' "$tuned" "$scratch"

#!/usr/bin/env bash
# Trains the vocoder that is built into the program (`--vocoder demo`), on the recordings of both built-in corpora, and replaces
# its files in crates/tandem/demo-vocoder. The weights depend on the processor in their last bits.
#
# In: nothing. Out: ema.safetensors, vocoder.json, manifest.json; the README there says what they are.
#
#     bash xtask/generators/train_demo_vocoder.sh [STEPS]     default: 5000
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
find_tandem
steps="${1:-5000}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# Both corpora as one: `demo-human` already lists the Persian rows of `demo`.
cp -r crates/tandem/demo-human "$work/corpus"
cp -r crates/tandem/demo-corpus/wavs "$work/corpus/"
for manifest in metadata.csv metadata_train.csv metadata_eval.csv; do
    grep '|en$' "crates/tandem/demo-corpus/$manifest" >>"$work/corpus/$manifest"
done
"$tandem" train-vocoder --train-data "$work/corpus" --batch-size 12 --max-steps "$steps" --checkpoint-dir "$work/vocoder"
# Attaching leaves the state of the training out; it needs a voice, of any quality.
"$tandem" train --train-data demo --model-size micro --batch-size 4 --max-steps 1 --checkpoint-dir "$work/voice" >/dev/null
"$tandem" attach-vocoder --checkpoint "$work/voice" --vocoder "$work/vocoder"
for name in ema.safetensors vocoder.json manifest.json; do
    cp "$work"/voice/vocoder/step-*/"$name" crates/tandem/demo-vocoder/
done

#!/usr/bin/env bash
# Sends SIGTERM to `tandem train` at random times and checks that it writes a checkpoint and exits with code 3
# within 30 s. Then resumes the run and repeats.
#
#   xtask/campaigns/signal_campaign.sh [SIGNALS]     default: 100
#
# Uses $TANDEM, or builds the program, and a model of size $MODEL_SIZE (default: tiny). One signal in four comes up
# to 2.5 s after the start of the run record, the others up to 1.5 s after the first step.
set -euo pipefail

signals=${1:-100}
cd "$(dirname "$0")/../.."
. scripts/environment.sh
find_tandem
dir=$(mktemp -d "${TMPDIR:-/tmp}/tandem-signals.XXXXXX")
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rm -rf "$dir"' EXIT
export TANDEM_DATA_DIR=$dir/data XDG_CACHE_HOME=$dir/cache NO_COLOR=1
train=("$tandem" train --train-data demo --cache-dataset --model-size "${MODEL_SIZE:-tiny}" --batch-size 2 --frame-budget 800
    --warmup-steps 1000 --model-start-delay 0 --align-flat-start 0 --align-every 2 --align-lag 2 --checkpoint-every 7
    --validate-every 1000 --sample-every 1000 --max-steps 1000000 --checkpoint-dir "$dir/run")

fail() {
    echo "FAILED after $sent signals: $1" >&2
    [ ! -f "$dir/err" ] || cat "$dir/err" >&2
    exit 1
}

now() { date +%s%3N; }

newest() { # prints the step of the newest checkpoint, or -1
    local last
    last=$(find "$dir/run" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -1)
    [ -n "$last" ] && echo $((10#$(basename "$last" | sed -E 's/step-([0-9]+).*/\1/'))) || echo -1
}

last_step() { # prints the last step of the record $1, or 0
    local last
    last=$(sed -nE 's/^.*"event":"step","step":([0-9]+),.*$/\1/p' "$1" | tail -1)
    echo "${last:-0}"
}

sent=0 longest=0 total=0 steps=0
while [ "$sent" -lt "$signals" ]; do
    before=$(newest)
    resume=()
    [ "$before" -lt 0 ] || resume=(--resume)
    touch "$dir/mark"
    "${train[@]}" "${resume[@]}" >/dev/null 2>"$dir/err" &
    child=$!
    record=
    while [ -z "$record" ]; do
        kill -0 "$child" 2>/dev/null || fail "the run ended before the signal"
        sleep 0.01
        record=$(find "$dir/run" -name '*.jsonl' -newer "$dir/mark" 2>/dev/null | tail -1 || true)
    done
    value=$((RANDOM % 2500))
    if [ $((RANDOM % 4)) != 0 ]; then
        value=$((RANDOM % 1500))
        until grep -qs '"event":"step"' "$record"; do
            kill -0 "$child" 2>/dev/null || fail "the run ended before the signal"
            sleep 0.02
        done
    fi
    sleep "$(printf '%d.%03d' $((value / 1000)) $((value % 1000)))"
    at=$(now)
    kill -TERM "$child" 2>/dev/null || fail "the run ended before the signal"
    code=0
    timeout 60 tail --pid="$child" -f /dev/null || fail "the run did not end within 60 s"
    took=$(($(now) - at))
    wait "$child" || code=$?
    child=
    sent=$((sent + 1)) total=$((total + took))
    [ "$took" -le "$longest" ] || longest=$took
    [ "$code" = 3 ] || fail "the exit code is $code"
    [ "$took" -le 30000 ] || fail "the exit took $took ms"
    ! grep -q 'error:\|is damaged and is not used' "$dir/err" || fail "stderr has an error or a skipped checkpoint"
    after=$(newest) stepped=$(last_step "$record")
    [ "$after" -ge 0 ] || [ "$stepped" = 0 ] || fail "there is no checkpoint after step $stepped"
    [ "$stepped" = 0 ] || [ "$after" = "$stepped" ] || fail "the last step is $stepped, the newest checkpoint $after"
    [ "$after" -ge "$before" ] || fail "the newest checkpoint was $before and is $after"
    [ "$after" = "$before" ] || steps=$((steps + 1))
done
echo "$sent signals: exit code 3 each time, $steps times with a new checkpoint of the last step;" \
    "from signal to exit $((total / sent)) ms on average, $longest ms at most"

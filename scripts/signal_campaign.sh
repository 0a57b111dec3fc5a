#!/usr/bin/env bash
# Sends SIGTERM to `tandem train` at random moments and checks that it writes a checkpoint and ends
# with exit code 3 within 30 s; then resumes it and does so again.
#
#   scripts/signal_campaign.sh [SIGNALS]     default: 100
#
# Uses $TANDEM, or target/release/tandem, and a model of size $MODEL_SIZE (default: tiny). One moment in
# four lies up to 2.5 s after the start of the run record, the others up to 1.5 s after the first step.
set -euo pipefail

signals=${1:-100}
cd "$(dirname "$0")/.."
. scripts/environment.sh
find_tandem
place=$(mktemp -d "${TMPDIR:-/tmp}/tandem-signals.XXXXXX")
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rm -rf "$place"' EXIT
export TANDEM_DATA_DIR=$place/data XDG_CACHE_HOME=$place/cache NO_COLOR=1
train=("$tandem" train --train-data demo --cache-dataset --model-size "${MODEL_SIZE:-tiny}" --batch-size 2 --frame-budget 800
    --warmup-steps 1000 --model-start-delay 0 --align-flat-start 0 --align-every 2 --align-lag 2 --checkpoint-every 7
    --validate-every 1000 --sample-every 1000 --max-steps 1000000 --checkpoint-dir "$place/run")

fail() {
    echo "FAILED after $sent signals: $1" >&2
    [ ! -f "$place/err" ] || cat "$place/err" >&2
    exit 1
}

now() { date +%s%3N; }

newest() { # the step of the newest checkpoint, -1 without any
    local last
    last=$(find "$place/run" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -1)
    [ -n "$last" ] && echo $((10#$(basename "$last" | sed -E 's/step-([0-9]+).*/\1/'))) || echo -1
}

last_step() { # the last step of the part that just ended, 0 without any
    local last
    last=$(sed -nE 's/^.*"event":"step","step":([0-9]+),.*$/\1/p' "$1" | tail -1)
    echo "${last:-0}"
}

sent=0 longest=0 total=0 steps=0
while [ "$sent" -lt "$signals" ]; do
    before=$(newest)
    resume=()
    [ "$before" -lt 0 ] || resume=(--resume)
    touch "$place/mark"
    "${train[@]}" "${resume[@]}" >/dev/null 2>"$place/err" &
    child=$!
    record=
    while [ -z "$record" ]; do
        kill -0 "$child" 2>/dev/null || fail "it ended by itself"
        sleep 0.01
        record=$(find "$place/run" -name '*.jsonl' -newer "$place/mark" 2>/dev/null | tail -1 || true)
    done
    value=$((RANDOM % 2500))
    if [ $((RANDOM % 4)) != 0 ]; then
        value=$((RANDOM % 1500))
        until grep -qs '"event":"step"' "$record"; do
            kill -0 "$child" 2>/dev/null || fail "it ended by itself"
            sleep 0.02
        done
    fi
    sleep "$(printf '%d.%03d' $((value / 1000)) $((value % 1000)))"
    at=$(now)
    kill -TERM "$child" 2>/dev/null || fail "it ended by itself"
    code=0
    timeout 60 tail --pid="$child" -f /dev/null || fail "it still ran after 60 s"
    took=$(($(now) - at))
    wait "$child" || code=$?
    child=
    sent=$((sent + 1)) total=$((total + took))
    [ "$took" -le "$longest" ] || longest=$took
    [ "$code" = 3 ] || fail "it ended with $code"
    [ "$took" -le 30000 ] || fail "it took $took ms"
    ! grep -q 'error:\|passed over' "$place/err" || fail "it said so"
    after=$(newest) stepped=$(last_step "$record")
    [ "$after" -ge 0 ] || [ "$stepped" = 0 ] || fail "there is no checkpoint after step $stepped"
    [ "$stepped" = 0 ] || [ "$after" = "$stepped" ] || fail "step $stepped, but a checkpoint of $after"
    [ "$after" -ge "$before" ] || fail "the newest checkpoint was $before and is $after"
    [ "$after" = "$before" ] || steps=$((steps + 1))
done
echo "$sent signals: exit code 3 each time, $steps times with a new checkpoint of the last step;" \
    "from the signal to the end $((total / sent)) ms on average, $longest ms at most"

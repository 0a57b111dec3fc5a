#!/usr/bin/env bash
# Kills `tandem train` with SIGKILL at random moments, restarts it with --resume, and checks that every
# restart finds a good checkpoint and that the run ends as one that was left alone.
#
#   scripts/kill_campaign.sh [KILLS] [SECONDS]     default: 100 kills, however long they take
#
# Uses $TANDEM, or target/release/tandem, and a model of size $MODEL_SIZE: tiny, or the hidden micro,
# whose restarts cost the least. A run is some 60 steps of the demo corpus; when one comes to
# its end it is compared with the run that was left alone, and the next one begins.
set -euo pipefail

kills=${1:-100}
seconds=${2:-0}
cd "$(dirname "$0")/.."
. scripts/environment.sh
find_tandem
place=$(mktemp -d "${TMPDIR:-/tmp}/tandem-kills.XXXXXX")
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rm -rf "$place"' EXIT
export TANDEM_DATA_DIR=$place/data XDG_CACHE_HOME=$place/cache NO_COLOR=1
steps=60
train=("$tandem" train --train-data demo --cache-dataset --model-size "${MODEL_SIZE:-tiny}" --batch-size 2 --frame-budget 800
    --warmup-steps 1000 --model-start-delay 0 --align-flat-start 0 --align-every 2 --align-lag 2 --checkpoint-every 3
    --validate-every 1000 --sample-every 1000 --max-steps "$steps")

fail() {
    echo "FAILED after $done_kills kills: $1" >&2
    [ ! -f "$place/err" ] || cat "$place/err" >&2
    exit 1
}

# Each step's batch, rows, frames, shape and losses; not its times. A torn last line does not match.
steps_of() {
    sed -nE 's/^.*"event":"step",("step":[0-9]+,"ticket":\{[^}]*\}),.*("items":.*\})\}$/\1,\2/p' \
        "$@" | sort -u
}

newest() { # the step of the newest checkpoint, -1 without any
    local last
    last=$(find "$1" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -1)
    [ -n "$last" ] && echo $((10#$(basename "$last" | sed -E 's/step-([0-9]+).*/\1/'))) || echo -1
}

first_step() { # waits until a record of this part has a step, or the program ended
    while kill -0 "$child" 2>/dev/null; do
        ! grep -qs '"event":"step"' "$1" || return 0
        sleep 0.02
    done
}

random() { # a time in seconds, below so many milliseconds
    local value=$(((RANDOM * 32768 + RANDOM) % ($1 + 1)))
    printf '%d.%03d' $((value / 1000)) $((value % 1000))
}

now() { date +%s%3N; }

done_kills=0
echo "a run that is left alone: $steps steps"
start=$(now)
"${train[@]}" --checkpoint-dir "$place/alone" >/dev/null 2>"$place/err" &
child=$!
first_step "$place/alone/run.jsonl"
stepping=$(now)
wait "$child" || fail "it did not end well"
child=
# How long a start takes, and six steps: the time of two checkpoints.
startup=$((stepping - start)) six=$((($(now) - stepping) * 6 / steps))
echo "a start takes $startup ms, six steps $six ms"
steps_of "$place"/alone/*.jsonl >"$place/expected"
[ "$(wc -l <"$place/expected")" = "$steps" ] || fail "its record does not have every step"
final=$(printf 'step-%08d' "$steps")

runs=0 without=0 in_draft=0 began=$SECONDS
while [ "$done_kills" -lt "$kills" ]; do
    [ "$seconds" = 0 ] || [ $((SECONDS - began)) -lt "$seconds" ] || break
    before=$(newest "$place/run")
    resume=()
    [ "$before" -lt 0 ] || resume=(--resume)
    touch "$place/mark"
    "${train[@]}" --checkpoint-dir "$place/run" "${resume[@]}" >/dev/null 2>"$place/err" &
    child=$!
    # One in four while it starts, the others between its first step and some checkpoints later.
    if [ $((RANDOM % 4)) = 0 ]; then
        sleep "$(random "$startup")"
    else
        record=
        while [ -z "$record" ] && kill -0 "$child" 2>/dev/null; do
            sleep 0.02
            record=$(find "$place/run" -name '*.jsonl' -newer "$place/mark" 2>/dev/null | tail -1 || true)
        done
        [ -z "$record" ] || first_step "$record"
        sleep "$(random "$six")"
    fi
    if kill -KILL "$child" 2>/dev/null; then
        wait "$child" 2>/dev/null || true
        child=
        done_kills=$((done_kills + 1))
        [ $((done_kills % 50)) != 0 ] || echo "$done_kills kills in $((SECONDS - began)) s, $runs runs ended" >&2
        [ -z "$(find "$place/run" -maxdepth 1 -name '.step-*' 2>/dev/null)" ] || in_draft=$((in_draft + 1))
        after=$(newest "$place/run")
        [ "$after" -ge "$before" ] || fail "the newest checkpoint was $before and is $after"
        [ "$after" -gt "$before" ] || without=$((without + 1))
    else
        code=0
        wait "$child" || code=$?
        child=
        [ "$code" = 0 ] || fail "a restart ended with $code"
        cmp -s "$place/alone/$final/weights.safetensors" "$place/run/$final/weights.safetensors" ||
            fail "the weights at the end differ"
        foreign=$(comm -13 "$place/expected" <(steps_of "$place"/run/*.jsonl))
        [ -z "$foreign" ] || fail "steps that a run left alone does not have: $foreign"
        runs=$((runs + 1))
        rm -rf "$place/run"
    fi
    ! grep -q 'error:\|passed over' "$place/err" || fail "a restart found no good checkpoint"
done
if [ -d "$place/run" ]; then
    resume=()
    [ "$(newest "$place/run")" -lt 0 ] || resume=(--resume)
    "${train[@]}" --checkpoint-dir "$place/run" "${resume[@]}" >/dev/null 2>"$place/err" ||
        fail "the last restart did not end well"
    cmp -s "$place/alone/$final/weights.safetensors" "$place/run/$final/weights.safetensors" ||
        fail "the weights at the end differ"
    foreign=$(comm -13 "$place/expected" <(steps_of "$place"/run/*.jsonl))
    [ -z "$foreign" ] || fail "steps that a run left alone does not have: $foreign"
    runs=$((runs + 1))
fi
echo "$done_kills kills in $((SECONDS - began)) s: every restart found a good checkpoint;" \
    "$in_draft came while a checkpoint was being written, $without before the next one was there;" \
    "$runs runs ended with the weights and the steps of the run that was left alone"

#!/usr/bin/env bash
# Kills `tandem train` with SIGKILL at random times, restarts it with --resume, and checks that every restart finds
# a good checkpoint and that the run ends like an undisturbed one.
#
#   xtask/campaigns/kill_campaign.sh [KILLS] [SECONDS]     default: 100 kills, no time limit
#
# Uses $TANDEM, or builds the program, and a model of size $MODEL_SIZE: tiny, or the hidden micro, which restarts
# fastest. A run has 60 steps of the demo corpus; when it is done, it is compared with the undisturbed run and the
# next one starts.
set -euo pipefail

kills=${1:-100}
seconds=${2:-0}
cd "$(dirname "$0")/../.."
. scripts/environment.sh
find_tandem
dir=$(mktemp -d "${TMPDIR:-/tmp}/tandem-kills.XXXXXX")
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rm -rf "$dir"' EXIT
export TANDEM_DATA_DIR=$dir/data XDG_CACHE_HOME=$dir/cache NO_COLOR=1
steps=60
train=("$tandem" train --train-data demo --cache-dataset --model-size "${MODEL_SIZE:-tiny}" --batch-size 2 --frame-budget 800
    --warmup-steps 1000 --model-start-delay 0 --align-flat-start 0 --align-every 2 --align-lag 2 --checkpoint-every 3
    --validate-every 1000 --sample-every 1000 --max-steps "$steps")

fail() {
    echo "FAILED after $done_kills kills: $1" >&2
    [ ! -f "$dir/err" ] || cat "$dir/err" >&2
    exit 1
}

# Batch, rows, frames, shape and losses of each step, without times. An incomplete last line does not match.
steps_of() {
    sed -nE 's/^.*"event":"step",("step":[0-9]+,"ticket":\{[^}]*\}),.*("items":.*\})\}$/\1,\2/p' \
        "$@" | sort -u
}

newest() { # prints the step of the newest checkpoint, or -1
    local last
    last=$(find "$1" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -1)
    [ -n "$last" ] && echo $((10#$(basename "$last" | sed -E 's/step-([0-9]+).*/\1/'))) || echo -1
}

first_step() { # waits until the record $1 has a step, or the program has ended
    while kill -0 "$child" 2>/dev/null; do
        ! grep -qs '"event":"step"' "$1" || return 0
        sleep 0.02
    done
}

random() { # prints a random time in seconds, at most $1 milliseconds
    local value=$(((RANDOM * 32768 + RANDOM) % ($1 + 1)))
    printf '%d.%03d' $((value / 1000)) $((value % 1000))
}

now() { date +%s%3N; }

done_kills=0
echo "undisturbed run: $steps steps"
start=$(now)
"${train[@]}" --checkpoint-dir "$dir/alone" >/dev/null 2>"$dir/err" &
child=$!
first_step "$dir/alone/run.jsonl"
stepping=$(now)
wait "$child" || fail "the undisturbed run failed"
child=
# Milliseconds of a start, and of six steps: the time of two checkpoints.
startup=$((stepping - start)) six=$((($(now) - stepping) * 6 / steps))
echo "a start takes $startup ms, six steps $six ms"
steps_of "$dir"/alone/*.jsonl >"$dir/expected"
[ "$(wc -l <"$dir/expected")" = "$steps" ] || fail "the record of the undisturbed run is incomplete"
final=$(printf 'step-%08d' "$steps")

runs=0 without=0 in_draft=0 began=$SECONDS
while [ "$done_kills" -lt "$kills" ]; do
    [ "$seconds" = 0 ] || [ $((SECONDS - began)) -lt "$seconds" ] || break
    before=$(newest "$dir/run")
    resume=()
    [ "$before" -lt 0 ] || resume=(--resume)
    touch "$dir/mark"
    "${train[@]}" --checkpoint-dir "$dir/run" "${resume[@]}" >/dev/null 2>"$dir/err" &
    child=$!
    # One kill in four during the start, the others between the first step and two checkpoints later.
    if [ $((RANDOM % 4)) = 0 ]; then
        sleep "$(random "$startup")"
    else
        record=
        while [ -z "$record" ] && kill -0 "$child" 2>/dev/null; do
            sleep 0.02
            record=$(find "$dir/run" -name '*.jsonl' -newer "$dir/mark" 2>/dev/null | tail -1 || true)
        done
        [ -z "$record" ] || first_step "$record"
        sleep "$(random "$six")"
    fi
    if kill -KILL "$child" 2>/dev/null; then
        wait "$child" 2>/dev/null || true
        child=
        done_kills=$((done_kills + 1))
        [ $((done_kills % 50)) != 0 ] || echo "$done_kills kills in $((SECONDS - began)) s, $runs runs ended" >&2
        [ -z "$(find "$dir/run" -maxdepth 1 -name '.step-*' 2>/dev/null)" ] || in_draft=$((in_draft + 1))
        after=$(newest "$dir/run")
        [ "$after" -ge "$before" ] || fail "the newest checkpoint was $before and is $after"
        [ "$after" -gt "$before" ] || without=$((without + 1))
    else
        code=0
        wait "$child" || code=$?
        child=
        [ "$code" = 0 ] || fail "a restart ended with $code"
        cmp -s "$dir/alone/$final/weights.safetensors" "$dir/run/$final/weights.safetensors" ||
            fail "the final weights differ"
        foreign=$(comm -13 "$dir/expected" <(steps_of "$dir"/run/*.jsonl))
        [ -z "$foreign" ] || fail "steps that the undisturbed run does not have: $foreign"
        runs=$((runs + 1))
        rm -rf "$dir/run"
    fi
    ! grep -q 'error:\|is damaged and is not used' "$dir/err" || fail "a restart found no good checkpoint"
done
if [ -d "$dir/run" ]; then
    resume=()
    [ "$(newest "$dir/run")" -lt 0 ] || resume=(--resume)
    "${train[@]}" --checkpoint-dir "$dir/run" "${resume[@]}" >/dev/null 2>"$dir/err" ||
        fail "the last restart failed"
    cmp -s "$dir/alone/$final/weights.safetensors" "$dir/run/$final/weights.safetensors" ||
        fail "the final weights differ"
    foreign=$(comm -13 "$dir/expected" <(steps_of "$dir"/run/*.jsonl))
    [ -z "$foreign" ] || fail "steps that the undisturbed run does not have: $foreign"
    runs=$((runs + 1))
fi
echo "$done_kills kills in $((SECONDS - began)) s: every restart found a good checkpoint;" \
    "$in_draft kills during the writing of a checkpoint, $without before the next checkpoint;" \
    "$runs runs ended with the weights and the steps of the undisturbed run"

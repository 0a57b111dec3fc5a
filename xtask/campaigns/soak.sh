#!/usr/bin/env bash
# Trains a model of ten thousand parameters for many steps, and compares memory and step time in the first and in
# the last tenth of the run.
#
#   xtask/campaigns/soak.sh [STEPS] [SECONDS]     default: 200000 steps, no time limit
#
# Uses $TANDEM, or builds the program. Fails if memory grew by more than 10 % and 32 MiB, or if the CPU time of a
# step grew by more than 20 %. Wall time is only printed, because it depends on other processes.
set -euo pipefail

steps=${1:-200000}
seconds=${2:-0}
cd "$(dirname "$0")/../.."
. scripts/environment.sh
find_tandem
dir=$(mktemp -d "${TMPDIR:-/tmp}/tandem-soak.XXXXXX")
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rm -rf "$dir"' EXIT
export TANDEM_DATA_DIR=$dir/data XDG_CACHE_HOME=$dir/cache NO_COLOR=1
"$tandem" train --train-data demo --cache-dataset --model-size micro --batch-size 1 \
    --max-mel-frames 200 --max-rejected 1 --align-flat-start 0 --align-every 100 \
    --checkpoint-every 2000 --validate-every 1000 --sample-every 1000 --max-steps "$steps" \
    --checkpoint-dir "$dir/run" >/dev/null 2>"$dir/err" &
child=$!

# One line per second: steps done, resident KiB, milliseconds of CPU time so far.
hertz=$(getconf CLK_TCK)
while kill -0 "$child" 2>/dev/null; do
    sleep 1
    done_steps=$(tail -c 20000 "$dir/run/run.jsonl" 2>/dev/null |
        sed -nE 's/^.*"event":"step","step":([0-9]+),.*$/\1/p' | tail -1 || true)
    resident=$(sed -nE 's/^VmRSS:\s*([0-9]+) kB$/\1/p' "/proc/$child/status" 2>/dev/null || true)
    used=$(sed -E 's/^.*\) //' "/proc/$child/stat" 2>/dev/null | awk -v hertz="$hertz" '{ print int(($12 + $13) * 1000 / hertz) }' || true)
    [ -z "$done_steps" ] || [ -z "$resident" ] || [ -z "$used" ] || echo "$done_steps $resident $used" >>"$dir/table"
    # The time limit ends the run like Ctrl-C, with a checkpoint.
    [ "$seconds" = 0 ] || [ "$SECONDS" -lt "$seconds" ] || { kill -TERM "$child" 2>/dev/null || true; seconds=0; }
done
code=0
wait "$child" || code=$?
child=
[ "$code" = 0 ] || [ "$code" = 3 ] || { cat "$dir/err" >&2; echo "FAILED: the exit code is $code" >&2; exit 1; }
# The table above may lag behind the run; the complete record has the last step.
reached=$(sed -nE 's/^.*"event":"step","step":([0-9]+),.*$/\1/p' "$dir/run/run.jsonl" | tail -1)

median_took() { # median time of the steps after $1 up to $2, in microseconds
    sed -nE 's/^.*"event":"step","step":([0-9]+),.*"took":([0-9]+),.*$/\1 \2/p' "$dir/run/run.jsonl" |
        awk -v from="$1" -v to="$2" '$1 > from && $1 <= to { print $2 }' | sort -n |
        awk '{ all[NR] = $1 } END { print int(all[int((NR + 1) / 2)] / 1000) }'
}

tenth=$((reached / 10))
first=$(median_took 0 "$tenth") last=$(median_took "$((reached - tenth))" "$reached")
record=$(($(stat -c %s "$dir/run/run.jsonl") >> 20))
# The first hundredth is left out: its steps see every batch shape for the first time.
awk -v reached="$reached" -v asked="$steps" -v code="$code" -v first="$first" -v last="$last" -v record="$record" '
    $1 >= reached / 100 && !start { start = $1; at_start = $3 }
    $1 >= reached / 10 && !tenth { tenth = $1; at_tenth = $3; before = $2 }
    $1 <= reached * 0.9 { near = $1; at_near = $3 }
    { end = $1; at_end = $3; after = $2; if ($2 > most) most = $2 }
    END {
        early = (at_tenth - at_start) / (tenth - start); late = (at_end - at_near) / (end - near)
        printf "%d of %d steps (exit code %d), record of %d MiB\n", reached, asked, code, record
        printf "memory: %.1f MiB after a tenth, %.1f MiB at the end, %.1f MiB at most\n", before / 1024, after / 1024, most / 1024
        printf "CPU: %.2f ms a step in the first tenth, %.2f ms in the last\n", early, late
        printf "a step, median: %.2f ms in the first tenth, %.2f ms in the last\n", first / 1000, last / 1000
        if (after > before * 1.1 && after > before + 32768) { print "FAILED: memory grew"; exit 1 }
        if (late > early * 1.2) { print "FAILED: steps take longer"; exit 1 }
    }' "$dir/table"

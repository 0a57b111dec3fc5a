#!/usr/bin/env bash
# For a machine with real GPUs: what only they can show, in about an hour, as one archive for a report.
#
#   scripts/first_gpu_hour.sh                        builds `tandem` with feature `cuda`, writes gpu-report.tar.gz
#   scripts/first_gpu_hour.sh --backend vulkan       another backend: vulkan, metal, rocm, wgpu
#   scripts/first_gpu_hour.sh --train-data my_voice  your corpus instead of the built-in demo; messages about rows that
#                                                    cannot be used name their files
#   scripts/first_gpu_hour.sh --model-size small     another voice than tiny
#   scripts/first_gpu_hour.sh --quick                a tenth of the steps, to see that it works; --steps N: so many
#
# Checks the machine, compares losses with the CPU, then measures one and two GPUs: step times, overlap, memory,
# utilisation, the profile, and the error of the plan. A part that fails is noted, and the others run. Names of
# users, hosts and directories, serial numbers and UUIDs are removed from everything that is archived.
set -euo pipefail
cd "$(dirname "$0")/.."

backend=cuda corpus=demo size=tiny steps=300 out=gpu-report
while [ $# -gt 0 ]; do
    case $1 in
        --backend) backend=$2 && shift ;;
        --train-data) corpus=$2 && shift ;;
        --model-size) size=$2 && shift ;;
        --quick) steps=30 ;;
        --steps) steps=$2 && shift ;;
        --out) out=$2 && shift ;;
        *) sed -n '2,15s/^# \?//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
[ ! -e "$out" ] || { echo "error: \`$out\` exists; name another directory with --out" >&2; exit 2; }

if [ -z "${TANDEM:-}" ]; then
    . scripts/environment.sh
    cargo build --release --locked -p tandem --features "$backend"
    TANDEM="$CARGO_TARGET_DIR/release/tandem"
fi
mkdir -p "$out"
work="$(mktemp -d)"
trap 'rm -rf "$work"; [ -z "${watcher:-}" ] || kill "$watcher" 2>/dev/null || true' EXIT
summary="$out/summary.txt"

say() { echo "$*" | tee -a "$summary" >&2; }

# part NAME COMMAND...: runs a part of the hour with its output in a file; a failure is noted.
part() {
    local name=$1 began=$SECONDS code=0
    shift
    echo "== $name" >&2
    "$@" >"$out/$name.txt" 2>"$out/$name.log" || code=$?
    case $code in
        0) say "$name: done in $((SECONDS - began)) s" ;;
        # For `compare`, for example: the second run is slower.
        1) say "$name: done in $((SECONDS - began)) s, with a negative result (exit code 1)" ;;
        *) say "$name: FAILED with exit code $code after $((SECONDS - began)) s; the last line: $(tail -1 "$out/$name.log")" ;;
    esac
}

# loss RECORD: step and total loss of each step.
loss() { sed -n 's/.*"event":"step","step":\([0-9]*\),.*"total":\([-0-9.e]*\).*/\1 \2/p' "$1"; }

train() { "$TANDEM" train --train-data "$corpus" --model-size "$size" --batch-size 8 --seed 7 --no-adapt "$@"; }

# Twenty steps at most, on the CPU and on the device with each precision, from the same seed.
compare_with_cpu() {
    local steps=$((steps < 20 ? steps : 20))
    train --backend cpu --max-steps $steps --checkpoint-dir "$work/cpu" || return
    for precision in off tf32 bf16; do
        if train --backend "$backend" --mel-on host --mixed-precision "$precision" --max-steps $steps --checkpoint-dir "$work/$precision"; then
            paste -d' ' <(loss "$work/cpu/run.jsonl") <(loss "$work/$precision/run.jsonl") |
                awk -v p="$precision" '{ d = $2 - $4; if (d < 0) d = -d; if (d > most) most = d; n++ }
                    END { printf "%s: %d steps, losses within %.2e of the CPU\n", p, n, most }'
        else
            echo "$precision: not supported by the device, or failed"
        fi
    done
}

# Whether the second start is faster, since kernels are stored.
warm_up_twice() {
    for again in first second; do
        train --backend "$backend" --max-steps 2 --checkpoint-dir "$work/warm-$again" | grep '^warm-up' | sed "s/^/$again: /"
    done
}

measure() { # NAME FLAGS...
    local name=$1
    shift
    train --backend "$backend" --max-steps "$steps" --checkpoint-dir "$work/$name" "$@" || return
    "$TANDEM" report "$work/$name" --json >"$out/$name.report.json"
}

watch_cards() {
    nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw,clocks.sm,temperature.gpu \
        --format=csv,nounits -lms 500 >"$out/utilisation.csv" 2>/dev/null &
    watcher=$!
}

facts() {
    uname -srm
    grep -m1 'model name' /proc/cpuinfo || true
    grep -E '^(MemTotal|MemAvailable)' /proc/meminfo || true
    "$TANDEM" --version
    "$TANDEM" devices
    command -v nvidia-smi >/dev/null || return 0
    nvidia-smi --query-gpu=index,name,driver_version,memory.total,pcie.link.gen.current,pcie.link.width.current,compute_cap --format=csv
    nvidia-smi topo -m
}

say "$("$TANDEM" --version), backend $backend, $steps steps for each measurement"
part facts facts
part devices "$TANDEM" devices --backend "$backend" --json
part against_the_cpu compare_with_cpu
part warm_up warm_up_twice
command -v nvidia-smi >/dev/null && watch_cards
part single measure single
part single_tf32 measure single_tf32 --mixed-precision tf32
part single_bf16 measure single_bf16 --mixed-precision bf16
part single_isolated measure single_isolated --enable-memory-isolation
part profile_single "$TANDEM" profile --train-data "$corpus" --model-size "$size" --batch-size 8 --backend "$backend" --num-steps "$steps" --record "$work/profile"
pair=(--data-gpu 0 --model-gpu 1)
if "$TANDEM" devices --backend "$backend" "${pair[@]}" >/dev/null 2>&1; then
    part dual measure dual "${pair[@]}"
    part dual_mel_on_device measure dual_mel "${pair[@]}" --mel-on device
    part profile_dual "$TANDEM" profile --train-data "$corpus" --model-size "$size" --batch-size 8 --backend "$backend" "${pair[@]}" --num-steps "$steps"
    part compare "$TANDEM" compare "$work/single" "$work/dual"
    part plan "$TANDEM" plan "$work/profile" --past "$work/single" "$work/dual"
else
    say "dual: not measured, there are not two devices"
    part plan "$TANDEM" plan "$work/profile" --past "$work/single"
fi
part doctor "$TANDEM" doctor "$work/single"

# Nothing that names a person, a machine or a file leaves it.
find "$out" -type f -exec sed -i -E \
    -e "s#$work#RUNS#g" -e "s#$PWD#TANDEM#g" -e "s#$HOME#HOME#g" -e "s#\b$(id -un)\b#USER#g" -e "s#\b$(uname -n)\b#HOST#g" \
    -e "s#$(printf '%s' "$corpus" | sed 's/[#.*[\^$/]/\\&/g')#CORPUS#g" \
    -e 's#GPU-[0-9a-f]{8}-[0-9a-f-]+#GPU-UUID#g' {} +
tar -czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")"
say "report: $out.tar.gz ($(du -h "$out.tar.gz" | cut -f1)); look through $out/ before you send it"

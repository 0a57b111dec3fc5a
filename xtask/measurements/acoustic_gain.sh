#!/usr/bin/env bash
# Shows what phonemes gain at equal CPU time: two voices of the demo corpus with the same steps, one that reads characters
# and one with the defaults.
#
# In: nothing. Out: CPU time of training, distortion and detail on the held-out rows, for both. Exit code 1 if the
# distortion of all rows is not lower by GAIN percent (15), or the CPU time is higher by more than a tenth. Three minutes of
# CPU time.
#
#     bash xtask/measurements/acoustic_gain.sh [STEPS] [DIRECTORY]     default: 600 steps, a temporary directory
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
find_tandem
steps="${1:-600}"
work="${2:-$(mktemp -d)}"
[ $# -gt 1 ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"

# The corpus is prepared first, so that both runs only train.
for pronunciation in characters auto; do
    "$tandem" prepare demo --cache-dataset --pronunciation "$pronunciation" >/dev/null 2>&1
    command=("$tandem" train --train-data demo --cache-dataset --pronunciation "$pronunciation" --batch-size 8
        --max-steps "$steps" --checkpoint-every "$steps" --validate-every 100000 --sample-every 100000
        --checkpoint-dir "$work/$pronunciation")
    python3 - "$work/$pronunciation.seconds" "${command[@]}" <<'PYTHON' >"$work/$pronunciation.log" 2>&1 ||
import pathlib, resource, subprocess, sys
done = subprocess.run(sys.argv[2:])
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
pathlib.Path(sys.argv[1]).write_text(f"{spent.ru_utime + spent.ru_stime:.1f}")
sys.exit(done.returncode)
PYTHON
        { cat "$work/$pronunciation.log" >&2; exit 2; }
    "$tandem" evaluate --checkpoint "$work/$pronunciation" --corpus demo --json >"$work/$pronunciation.json" 2>/dev/null ||
        [ $? -eq 1 ]
done

python3 - "$work" "$steps" "${GAIN:-15}" <<'PYTHON'
import json, pathlib, sys
work, steps, bound = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
found = {}
for name in ["characters", "auto"]:
    result = json.loads((work / f"{name}.json").read_text())
    seconds = float((work / f"{name}.seconds").read_text())
    every = result["all"]
    of_language = {tag: one["distortion"] for tag, one in result["languages"].items()}
    found[name] = (every["distortion"], of_language, seconds)
    languages = ", ".join(f"{tag} {one['distortion']:.2f}" for tag, one in result["languages"].items())
    print(
        f"{name:<11} {steps} steps, {seconds:.0f} s of CPU time: {every['distortion']:.2f} dB ({languages}), detail"
        f" {100 * every['change_over_time']:.0f} % over time and {100 * every['change_over_bands']:.0f} % over bands"
    )
(before, each_before, longer), (now, each_now, seconds) = found["characters"], found["auto"]
gain = 100 * (1 - now / before)
each = ", ".join(f"{tag} {100 * (1 - each_now[tag] / each_before[tag]):.1f} %" for tag in each_before)
more = 100 * (seconds / longer - 1)
print(f"distortion {gain:.1f} % lower ({each}), {more:+.0f} % CPU time; bound {bound:.0f} %")
sys.exit(0 if gain >= bound and seconds <= 1.1 * longer else 1)
PYTHON

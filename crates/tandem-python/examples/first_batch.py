"""Measures the time from `import tandem` to the first batch, each time in a new interpreter, with a warm cache.

    python first_batch.py                     the built-in corpus
    python first_batch.py my-corpus --cache-dataset --cache-dir my-cache

Prints the median of the runs and its parts. Exits with 1 if it is more than `--at-most` seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from typing import Dict, List

#: Runs in the new interpreter. The parts follow one another, and their sum is the whole.
CHILD = """
import json, sys, time
times = [time.perf_counter()]
import tandem
times.append(time.perf_counter())
corpus, settings = json.loads(sys.argv[1])
loader = tandem.Loader(corpus, **settings)
times.append(time.perf_counter())
batches = iter(loader)
batch = next(batches)
times.append(time.perf_counter())
assert batch.mel.shape[0] == len(batch.ids) and batch.mel_lengths.min() > 0
print(json.dumps([later - earlier for earlier, later in zip(times, times[1:])]))
"""
PARTS = ("import tandem", "tandem.Loader(...)", "first batch, with NumPy's import")


def main() -> int:
    args = arguments()
    settings = {"batch_size": args.batch_size, "num_workers": args.num_workers, "cache_dataset": args.cache_dataset}
    if args.cache_dir:
        settings["cache_dir"] = args.cache_dir
    # The first run builds the cache, or finds it, and brings the files into memory.
    runs: List[List[float]] = [once(args.corpus, settings) for _ in range(args.runs + 1)][1:]
    parts: Dict[str, float] = {name: statistics.median(run[at] for run in runs) for at, name in enumerate(PARTS)}
    for name, seconds in parts.items():
        print(f"{name:<34}{1000 * seconds:7.1f} ms")
    whole = statistics.median(sum(run) for run in runs)
    slowest = max(sum(run) for run in runs)
    print(f"{'from import to first batch':<34}{1000 * whole:7.1f} ms (median of {args.runs}, slowest {1000 * slowest:.1f} ms)")
    if whole > args.at_most:
        print(f"fault: more than {args.at_most:g} s", file=sys.stderr)
        return 1
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", default="demo")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--cache-dataset", action="store_true")
    parser.add_argument("--cache-dir")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--at-most", type=float, default=0.2, help="seconds")
    return parser.parse_args()


def once(corpus: str, settings: Dict[str, object]) -> List[float]:
    command = [sys.executable, "-c", CHILD, json.dumps([corpus, settings])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    found: List[float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())

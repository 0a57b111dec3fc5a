#!/usr/bin/env python3
"""Training steps of two programs, in alternation: time, scaling and peak memory.

    xtask/measurements/step_ratio.py BEFORE AFTER [--rounds N] [--steps N] [--only SIZE]

Runs `tandem bench step` of both programs in turns, with one and two threads, and prints the medians over the rounds, the
ratio of the programs, and how much faster two threads are than one. Use it on a quiet machine.
"""
import argparse
import json
import os
import statistics
import subprocess

# Model size, utterances of a batch, part of the steps.
CASES = [("tiny", 8, 1.0), ("tiny", 16, 0.6), ("small", 8, 0.25)]
THREADS = [1, 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", metavar="SIZE")
    args = parser.parse_args()
    cases = [case for case in CASES if args.only in (None, case[0])]
    found = {}
    for _ in range(args.rounds):
        for size, batch, part in cases:
            for threads in THREADS:
                for which, program in enumerate(args.programs):
                    steps = max(3, round(args.steps * part))
                    figures = measure(program, size, batch, threads, steps)
                    found.setdefault((size, batch, threads, which), []).append(figures)
    print("| voice, batch, threads | before | after | ratio | before, 2 threads to 1 | after | peak memory |")
    print("|---|---|---|---|---|---|---|")
    time, memory = ({key: statistics.median(one[at] for one in list) for key, list in found.items()} for at in (0, 1))
    for size, batch, _ in cases:
        for threads in THREADS:
            before, after = (time[size, batch, threads, which] for which in (0, 1))
            faster = [time[size, batch, 1, which] / time[size, batch, threads, which] for which in (0, 1)]
            peaks = [memory[size, batch, threads, which] for which in (0, 1)]
            print(f"| {size}, {batch}, {threads} | {before:.0f} ms | {after:.0f} ms | {after / before:.2f} "
                  f"| {faster[0]:.2f} | {faster[1]:.2f} | {peaks[0]:.0f}, {peaks[1]:.0f} MiB |")


def measure(program, size, batch, threads, steps):
    """The median step in milliseconds, and the peak memory of the process in MiB."""
    command = [program, "bench", "step", "--backend", "cpu", "--model-size", size, "--batch-size", str(batch),
               "--threads", str(threads), "--steps", str(steps), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    return json.loads(text)["step_ms"], used.ru_maxrss / 1024


if __name__ == "__main__":
    main()

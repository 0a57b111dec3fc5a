#!/usr/bin/env python3
"""Predicted against measured peak memory of training on the CPU.

  xtask/measurements/memory_grid.py CORPUS... [--tandem PROGRAM] [--sizes tiny,small] [--batches 2,16,64]

Each cell trains until every queue was full several times (80 utterances, and 8 steps at least), with a checkpoint and a validation every
second step, reads the prediction that `train` prints ("needs about ..."), and compares it with the peak that the system counted for the process. Exit code 1: a
prediction is below the measured peak, or more than --above percent over it. Needs Linux and Python 3.8, no packages.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

UNITS = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}


def peak(command):
    """Output and peak resident memory in MiB of a command."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        log.seek(0)
        return os.waitstatus_to_exitcode(status), log.read(), usage.ru_maxrss / 1024


def measured(arguments, corpus, size, batch):
    with tempfile.TemporaryDirectory() as run:
        command = [arguments.tandem, "train", "--train-data", corpus, "--checkpoint-dir", run]
        command += ["--model-size", size, "--batch-size", str(batch), "--max-steps", str(max(8, 80 // int(batch)))]
        command += ["--validate-every", "2", "--checkpoint-every", "2"]
        status, text, used = peak(command)
    found = re.search(r"largest batch (\S+ x \S+) frames.* needs about ([0-9.]+) (KiB|MiB|GiB)", text)
    if not found:
        sys.exit(f"`{' '.join(command)}` printed no prediction:\n{text[-1000:]}")
    if status != 0:
        return found[1], float(found[2]) * UNITS[found[3]], None
    return found[1], float(found[2]) * UNITS[found[3]], used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("--tandem", default="tandem")
    parser.add_argument("--sizes", default="tiny,small")
    parser.add_argument("--batches", default="2,16,64")
    parser.add_argument("--above", type=float, default=15.0, help="most percent that a prediction may be too large")
    arguments = parser.parse_args()
    print("| corpus | size | largest batch | predicted MiB | measured MiB | predicted / measured |")
    print("|---|---|---|---|---|---|")
    missed = 0
    for corpus in arguments.corpora:
        for size in arguments.sizes.split(","):
            for batch in arguments.batches.split(","):
                shape, predicted, used = measured(arguments, corpus, size, batch)
                name = os.path.basename(os.path.normpath(corpus))
                if used is None:
                    print(f"| {name} | {size} | {shape} | {predicted:.0f} | refused | - |", flush=True)
                    continue
                ratio = predicted / used
                missed += not 1.0 <= ratio <= 1.0 + arguments.above / 100
                print(f"| {name} | {size} | {shape} | {predicted:.0f} | {used:.0f} | {ratio:.2f} |", flush=True)
    if missed:
        sys.exit(f"{missed} predictions are below the measured peak, or more than {arguments.above:g} % over it")


if __name__ == "__main__":
    main()

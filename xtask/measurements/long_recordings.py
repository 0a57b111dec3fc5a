#!/usr/bin/env python3
"""Measures how well `tandem import` cuts a long recording into the sentences of its text.

In: the program, and a corpus in LJSpeech layout. Its recordings are joined to one, with their pauses as they are, and its
texts to one text. Where each sentence begins and ends is then known, from its own recording: levels are measured over 20 ms,
and speech begins and ends where they are 30 % of the way from the noise (5th percentile) to loud speech (95th).
Out: printed, and with --json a file:

  recovered   sentences that are in a row, and rows that are one sentence
  boundary    between where a row's speech begins or ends and where it does in truth: median, and shares of all
  lost        rows that begin after the first or end before the last sound of their sentence by more than 20 ms
  wrong       with --wrong 0.05: this share of the sentences is replaced by others of the corpus; which of them are rejected
              (recall), and which of the rejected ones are wrong (precision)

Exit code 1: fewer than 98 % recovered, a median above 30 ms, or more than 2 % of the boundaries off by over 80 ms.

    pip install numpy soundfile
    python3 xtask/measurements/long_recordings.py --tandem target/release/tandem --corpus corpora/ljspeech
    python3 xtask/measurements/long_recordings.py --tandem target/release/tandem --corpus corpora/ljspeech --wrong 0.05
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy
import soundfile

LOST = 0.02


def main():
    args = arguments()
    rows = [line.split("|") for line in (args.corpus / "metadata.csv").read_text("utf-8").splitlines() if line]
    rows = rows[: args.rows]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "in").mkdir()
        truth, rate = join(args.corpus, [row[0] for row in rows], folder / "in/long.flac")
        texts = [row[1] for row in rows]
        wrong = replace(texts, args.wrong)
        (folder / "in/long.txt").write_text("\n".join(texts) + "\n", "utf-8")
        start = time.monotonic()
        command = [args.tandem, "import", folder / "in/long.flac", folder / "out", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(2)
        took = time.monotonic() - start
        cut = json.loads((folder / "out/cuts/long.json").read_text("utf-8"))
    figures = figures_of(cut, lines_of(cut, texts), truth, wrong) | {"minutes": truth[-1][1] / 60, "seconds": took}
    for name, value in figures.items():
        print(f"{name:<28} {value:.4g}" if isinstance(value, float) else f"{name:<28} {value}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))
    good = figures["recovered_share"] >= 0.98 and figures["boundary_median_ms"] <= 30 and figures["within_80_ms"] >= 0.98
    sys.exit(0 if good else 1)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tandem", type=pathlib.Path, required=True)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--rows", type=int, help="the first rows only")
    parser.add_argument("--wrong", type=float, default=0.0, help="share of sentences that are replaced")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def join(corpus, ids, path):
    """Writes the long recording; where the speech of each sentence begins and ends, in seconds."""
    truth, at, rate = [], 0, None
    out = None
    for name in ids:
        file = next(file for file in (corpus / "wavs").glob(f"{name}.*"))
        sound, own = soundfile.read(file, dtype="int16")
        rate = rate or own
        out = out or soundfile.SoundFile(path, "w", rate, 1, subtype="PCM_16")
        first, last = speech(sound.astype(float), rate)
        truth.append(((at + first) / rate, (at + last) / rate))
        out.write(sound)
        at += len(sound)
    out.close()
    return truth, rate


def speech(sound, rate):
    step = rate // 100
    energy = numpy.add.reduceat(sound**2, range(0, len(sound), step))
    energy = energy[:-1] + energy[1:]
    level = 10 * numpy.log10(energy + 1)
    noise, most = numpy.quantile(level, 0.05), numpy.quantile(level, 0.95)
    loud = numpy.flatnonzero(level >= noise + 0.3 * (most - noise))
    return loud[0] * step, min(len(sound), (loud[-1] + 2) * step)


def replace(texts, share):
    """Replaces texts by others in place; which ones."""
    chance = random.Random(1)
    wrong = set(chance.sample(range(len(texts)), round(share * len(texts))))
    originals = list(texts)
    for number in wrong:
        others = [text for text in originals if text != originals[number]]
        texts[number] = chance.choice(others)
    return wrong


def lines_of(cut, texts):
    """The line of each sentence: the program may see two sentences in one line."""
    lines, line, left = [], 0, len(texts[0].split())
    for sentence in cut["sentences"]:
        while left <= 0:
            line += 1
            left = len(texts[line].split())
        lines.append(line)
        left -= len(sentence.split())
    return lines


def figures_of(cut, lines, truth, wrong):
    out = {one["sentence"] for one in cut["left_out"]}
    left_out = {lines[number] for number in out}
    kept = [number for number in range(len(truth)) if number not in left_out]
    rows = cut["rows"]
    firsts = [row["sentence"] for row in rows] + [len(lines)]
    errors, lost, whole = [], 0, 0
    for place, row in enumerate(rows):
        sentences = range(row["sentence"], max(firsts[place + 1], row["sentence"] + 1))
        sentences = [number for number in sentences if number not in out]
        inside = [lines[number] for number in sentences]
        if set(inside) & wrong:
            continue
        before, after = sentences[0] - 1, sentences[-1] + 1
        starts = (place == 0 or firsts[place - 1] != row["sentence"]) and (before < 0 or lines[before] != inside[0])
        ends = firsts[place + 1] != row["sentence"] and (after == len(lines) or lines[after] != inside[-1])
        whole += starts and ends and len(set(inside)) == 1
        begin, end = truth[inside[0]][0], truth[inside[-1]][1]
        off = ([row["speech"][0] - begin] if starts else []) + ([row["speech"][1] - end] if ends else [])
        errors += [abs(one) for one in off]
        lost += (starts and row["start"] > begin + LOST) or (ends and row["end"] < end - LOST)
    errors = numpy.array(errors)
    right = len(truth) - len(wrong)
    figures = {
        "sentences": len(truth),
        "rows": len(rows),
        "recovered_share": sum(number not in wrong for number in kept) / right,
        "one_sentence_share": whole / right,
        "boundary_median_ms": 1000 * float(numpy.median(errors)),
        "boundary_p98_ms": 1000 * float(numpy.quantile(errors, 0.98)),
        "boundary_worst_ms": 1000 * float(errors.max()),
        "within_80_ms": float((errors <= 0.08).mean()),
        "lost": int(lost),
    }
    if wrong:
        figures |= {
            "wrong": len(wrong),
            "rejected": len(left_out),
            "recall": len(wrong & left_out) / len(wrong),
            "precision": len(wrong & left_out) / max(1, len(left_out)),
        }
    return figures


if __name__ == "__main__":
    main()

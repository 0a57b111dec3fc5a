#!/usr/bin/env python3
"""Measures Persian reading by cross-validation: phoneme error rate, ezafe, guessed words.

    cargo build --release -p tandem-text --example persian_reading
    xtask/measurements/persian_reading.py --reader target/release/examples/persian_reading --farsdat FarsDat.csv

Each fold trains on the other sentences (train_persian_reading.py) and reads its own with the Rust program and these
tables. Phoneme errors are counted over whole sentences without spaces; glottal stops and doubled sounds do not count. A
word that stays in characters is wrong. The ezafe is counted at the parts of the sentence that could be aligned. The
tags of the Rust program are compared with those of the script. `--shipped` measures the built-in tables instead,
which have seen these sentences.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "generators"))
import train_persian_reading as training  # noqa: E402

MARKS = str.maketrans({mark: " " for mark in "،,.;:؛?؟!«»\"()-—…"})


def read(reader, texts, model=None):
    command = [reader, "read"] + ([model] if model else [])
    done = subprocess.run(command, input="\n".join(texts) + "\n", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def sounds_of(phonemes):
    joined = training.shorten("".join(phonemes.translate(MARKS).split()))
    return training.plain(joined.replace("w", "v"))


def score(sentences, found, answers, tagger, total):
    for (_, spoken), (groups, _, tags), answer in zip(sentences, found, answers):
        right = training.plain("".join(sounds for sounds, _ in spoken))
        total["errors"] += training.edits(right, sounds_of(answer["phonemes"]))
        total["sounds"] += len(right)
        total["words"] += answer["words"]
        total["guessed"] += len(answer["guessed"])
        total["as characters"] += len(answer["as_characters"])
        at = 0
        for parts in groups:
            own = tagger.tag(parts) if tagger else []
            for (text, _, _, _, listed), tag in zip(parts, own):
                # A written ezafe («کتاب‌های») counts as found.
                written = text.endswith("ی") and listed.endswith("je")
                found_one, there = tag or written, tags[at]
                total["both" if found_one and there else "missed" if there else "wrong" if tag else "none"] += 1
                at += 1
        if tagger and answer["tags"] != [tag for parts in groups for tag in tagger.tag(parts)]:
            total["tagged in another way"] += 1


def measure(arguments):
    """Trains on all folds but one, and reads this one."""
    reader, sentences, found, fold, folds = arguments
    seen = [row for place, row in enumerate(found) if place % folds != fold]
    words, letters, ezafe = training.train(seen)
    own = slice(fold, None, folds)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "fold.model"
        model.write_bytes(training.pack(words, letters, ezafe))
        answers = read(reader, [text for text, _ in sentences[own]], model)
    counts = Counter()
    score(sentences[own], found[own], answers, ezafe, counts)
    return counts


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reader", required=True, help="the example persian_reading")
    options.add_argument("--farsdat", required=True, help="FarsDat.csv")
    options.add_argument("--folds", type=int, default=5)
    options.add_argument("--only", type=int, help="one fold, for a quick look")
    options.add_argument("--jobs", type=int, help="folds at a time [default: all processors]")
    options.add_argument("--shipped", action="store_true")
    given = options.parse_args()
    sentences = training.read_farsdat(given.farsdat)
    found = training.examples(given.reader, sentences)
    total = Counter()
    if given.shipped:
        answers = read(given.reader, [text for text, _ in sentences])
        score(sentences, found, answers, None, total)
        return report(total)
    folds = range(given.folds) if given.only is None else [given.only]
    with ProcessPoolExecutor(given.jobs) as pool:
        arguments = [(given.reader, sentences, found, fold, given.folds) for fold in folds]
        for fold, counts in zip(folds, pool.map(measure, arguments)):
            print(f"fold {fold}: ", end="", file=sys.stderr)
            report(counts, sys.stderr)
            total.update(counts)
    report(total)


def report(total, file=sys.stdout):
    line = f"PER {total['errors'] / total['sounds']:.2%} of {total['sounds']} sounds"
    if total["both"]:
        precision = total["both"] / (total["both"] + total["wrong"])
        recall = total["both"] / (total["both"] + total["missed"])
        line += f"; ezafe precision {precision:.1%}, recall {recall:.1%}, F1 {2 / (1 / precision + 1 / recall):.1%}"
    share = lambda name: f"{total[name] / total['words']:.1%}"
    line += f"; of {total['words']} words {share('guessed')} guessed, {share('as characters')} in characters"
    line += f"; {total['tagged in another way']} sentences tagged in another way than by the script"
    print(line, file=file)


if __name__ == "__main__":
    main()

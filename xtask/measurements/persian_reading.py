#!/usr/bin/env python3
"""Measures Persian reading by cross-validation: phoneme error rate, ezafe, guessed words.

    cargo build --release -p tandem-text --example persian_reading
    xtask/measurements/persian_reading.py --reader target/release/examples/persian_reading --farsdat FarsDat.csv

Each fold trains on the other sentences (train_persian_reading.py) and reads its own with the Rust program and these
tables. Phoneme errors are counted over whole sentences without spaces; glottal stops and doubled sounds do not count. A
word that stays in characters is wrong. The ezafe is counted at the parts of the sentence that could be aligned. The
tags of the Rust program are compared with those of the script. `--shipped` measures the built-in tables instead,
which have seen these sentences.

Words with several readings: `--homographs FILE` (as for the training script) counts how many are right in the rows of FILE by
cross-validation, and in our own sentences that are never trained on; beside it by the cues alone, and by the first reading.
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
    reader, sentences, found, rows, fold, folds = arguments
    seen = [row for place, row in enumerate(found) if place % folds != fold]
    texts = [text for place, (text, _) in enumerate(sentences) if place % folds != fold]
    data, ezafe = training.train(reader, texts, seen, rows)
    own = slice(fold, None, folds)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "fold.model"
        model.write_bytes(data)
        answers = read(reader, [text for text, _ in sentences[own]], model)
    counts = Counter()
    score(sentences[own], found[own], answers, ezafe, counts)
    return counts


def measure_homographs(reader, texts, found, rows, folds):
    """Rows by cross-validation, and our own held-back sentences after training on all rows."""
    command = [reader, "homographs"]
    spoken = training.spoken_homographs(command, texts, found)
    own = [training.homograph_examples(command, training.own_homographs(odd)) for odd in (0, 1)]
    rows = training.homograph_examples(command, rows)
    sets = {"rows": Counter(), "FarsDat": Counter(), "own, trained on": Counter(), "own, held back": Counter()}
    for fold in range(folds):
        others = [row for found in (rows, spoken) for place, row in enumerate(found) if place % folds != fold]
        model = training.HomographModel(others + own[0])
        count_homographs(model, rows[fold::folds], sets["rows"])
        count_homographs(model, spoken[fold::folds], sets["FarsDat"])
    model = training.HomographModel(rows + own[0] + spoken)
    count_homographs(model, own[0], sets["own, trained on"])
    count_homographs(model, own[1], sets["own, held back"])
    for name, counts in sets.items():
        if counts["all"]:
            share = lambda way: f"{way} {counts[way] / counts['all']:.1%}"
            print(f"homographs, {name}: of {counts['all']} right by", ", ".join(map(share, ("model", "cues", "first"))))


def count_homographs(model, examples, counts):
    for sight, right in examples:
        best = lambda scores: scores.index(max(scores))
        counts["all"] += 1
        counts["model"] += best(model.scores(sight)) == right
        counts["cues"] += best(sight["cues"]) == right
        counts["first"] += right == 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reader", required=True, help="the example persian_reading")
    options.add_argument("--farsdat", required=True, help="FarsDat.csv")
    options.add_argument("--folds", type=int, default=5)
    options.add_argument("--only", type=int, help="one fold, for a quick look")
    options.add_argument("--jobs", type=int, help="folds at a time [default: all processors]")
    options.add_argument("--homographs", action="append", default=[])
    options.add_argument("--only-homographs", action="store_true", help="no phoneme errors, which need minutes")
    options.add_argument("--shipped", action="store_true")
    given = options.parse_args()
    sentences = training.read_farsdat(given.farsdat)
    found = training.examples(given.reader, sentences)
    total = Counter()
    if given.shipped:
        answers = read(given.reader, [text for text, _ in sentences])
        score(sentences, found, answers, None, total)
        return report(total)
    rows = [row for path in given.homographs for row in training.read_homographs(path)]
    measure_homographs(given.reader, [text for text, _ in sentences], found, rows, given.folds)
    if given.only_homographs:
        return None
    rows += training.own_homographs(0)
    folds = range(given.folds) if given.only is None else [given.only]
    with ProcessPoolExecutor(given.jobs) as pool:
        arguments = [(given.reader, sentences, found, rows, fold, given.folds) for fold in folds]
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

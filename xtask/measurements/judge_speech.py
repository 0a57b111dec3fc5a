#!/usr/bin/env python3
"""Judges speech by a neural recogniser and a model of opinions: word and character errors, DNSMOS, with intervals.

In: a list of sentences (`id|text` lines) and folders with a recording ID.wav, ID.flac or ID.ogg for each. The first folder should be
the recordings. Nothing in it may have been trained on. All sounds get the same level and the same faint noise.
Out: a line for each folder, and with --json a file: WER, CER and DNSMOS (overall) with 95 % intervals, by a bootstrap over
the sentences; behind the first line also each ratio of word errors to it, with an interval over the same sentences.

Controls, which must fail, or nothing here means anything (exit code 2): the first folder against the texts of other
sentences, the first folder in loud noise, and with --other FOLDER another speaker, whose voice must be farther from the first
folder's than a second half of it is from the first half.

The recogniser is Moonshine tiny, for English. There is no ear of this quality for Persian here.

    pip install moonshine-voice==0.1.0 speechmos librosa soundfile numpy onnxruntime
    python3 xtask/measurements/judge_speech.py held_out.csv recordings=wavs voice=spoken [--bound 2.0] [--other FOLDER] [--no-mos]

Exit code 1: --bound is given, and the last folder has more than so many times the word errors of the first.
"""

import argparse
import json
import pathlib
import re
import sys

import numpy
import soundfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "examples"))
import moonshine_judge  # noqa: E402

DIGITS = dict(zip("0123456789", "zero one two three four five six seven eight nine".split()))
LOUD_NOISE = 0.3  # of the peak
ROUNDS = 2000
LEAST_CONTROL = 0.6  # word errors of a control


def words(text):
    text = re.sub(r"\d", lambda found: f" {DIGITS[found.group()]} ", text.lower().replace("-", " "))
    return re.sub(r"[^a-z' ]", " ", text).split()


def distance(said, heard):
    """Insertions, deletions and substitutions (Levenshtein distance)."""
    above = list(range(len(heard) + 1))
    for row, one in enumerate(said, 1):
        current = [row]
        for column, other in enumerate(heard, 1):
            current.append(min(above[column] + 1, current[-1] + 1, above[column - 1] + (one != other)))
        above = current
    return above[-1]


def counts(said, heard):
    """Wrong and all words, wrong and all characters of a sentence."""
    letters = [" ".join(text) for text in (said, heard)]
    return distance(said, heard), len(said), distance(*letters), len(letters[0])


def find(folder, name):
    for ending in (".wav", ".flac", ".ogg"):
        path = pathlib.Path(folder) / (name + ending)
        if path.exists():
            return path
    sys.exit(f"error: no sound file for {name} in {folder}")


def interval(table, rate, seed=0):
    """Of a function of rows, 95 %, by resampling rows."""
    draw = numpy.random.default_rng(seed)
    rates = [rate(table[draw.integers(0, len(table), len(table))]) for _ in range(ROUNDS)]
    return [float(value) for value in numpy.percentile(rates, [2.5, 97.5])]


def word_errors(table):
    return table[:, 0].sum() / table[:, 1].sum()


def character_errors(table):
    return table[:, 2].sum() / table[:, 3].sum()


def heard_in(recogniser, paths):
    return [words(moonshine_judge.hear(recogniser, path)) for path in paths]


def opinions(paths):
    import librosa
    from speechmos import dnsmos

    found = []
    for path in paths:
        sound, _ = librosa.load(path, sr=16000)
        sound = 0.7 * sound / max(1e-6, numpy.abs(sound).max())
        found.append(dnsmos.run(numpy.clip(sound, -1, 1), 16000)["ovrl_mos"])
    return numpy.array(found)


def in_loud_noise(paths, room):
    noisy = []
    for number, path in enumerate(paths):
        sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
        noise = numpy.random.default_rng(number).standard_normal(len(sound))
        sound = sound.mean(axis=1) + LOUD_NOISE * numpy.abs(sound).max() * noise
        noisy.append(pathlib.Path(room) / f"{number}.wav")
        soundfile.write(noisy[-1], sound / numpy.abs(sound).max(), rate)
    return noisy


def timbre(paths):
    """Mean and deviation of mel-frequency cepstra: enough to tell speakers apart."""
    import librosa

    rows = []
    for path in paths:
        sound, rate = librosa.load(path, sr=16000)
        cepstra = librosa.feature.mfcc(y=sound / max(1e-6, numpy.abs(sound).max()), sr=rate, n_mfcc=20)[1:]
        rows.append(numpy.concatenate([cepstra.mean(axis=1), cepstra.std(axis=1)]))
    return numpy.mean(rows, axis=0)


def controls(recogniser, said, heard, paths, other):
    import tempfile

    table = lambda found: numpy.array([counts(*pair) for pair in zip(said, found)])
    rates = {"shuffled texts": word_errors(table(heard[1:] + heard[:1]))}
    with tempfile.TemporaryDirectory() as room:
        rates["loud noise"] = word_errors(table(heard_in(recogniser, in_loud_noise(paths, room))))
    for name, rate in rates.items():
        print(f"control {name}: WER {100 * rate:.1f} %")
    weak = [name for name, rate in rates.items() if rate < LEAST_CONTROL]
    if other:
        first, second = timbre(paths[::2]), timbre(paths[1::2])
        stranger = timbre(sorted(path for path in pathlib.Path(other).iterdir())[: len(paths)])
        near, far = (float(numpy.linalg.norm(first - one)) for one in (second, stranger))
        print(f"control other speaker: {far:.1f} away, the same one {near:.1f}")
        weak += ["other speaker"] if far < 2 * near else []
    return rates, weak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=pathlib.Path, help="lines of id|text")
    parser.add_argument("folders", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--bound", type=float, help="largest ratio of word errors, last folder to first")
    parser.add_argument("--other", help="folder of recordings of another speaker, for a control")
    parser.add_argument("--no-mos", action="store_true", help="without DNSMOS")
    parser.add_argument("--json", type=pathlib.Path, help="file for the result")
    args = parser.parse_args()

    rows = [line.split("|") for line in args.rows.read_text("utf-8").splitlines() if line]
    said = [words(row[-1]) for row in rows]
    recogniser = moonshine_judge.transcriber()
    result, first, ratio = {}, None, None
    for entry in args.folders:
        name, folder = entry.split("=", 1)
        paths = [find(folder, row[0]) for row in rows]
        heard = heard_in(recogniser, paths)
        table = numpy.array([counts(*pair) for pair in zip(said, heard)])
        found = {"wer": word_errors(table), "wer_95": interval(table, word_errors)}
        found |= {"cer": character_errors(table), "cer_95": interval(table, character_errors)}
        low, high = found["wer_95"]
        line = f"{name:<14} WER {100 * found['wer']:5.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        line += f"  CER {100 * found['cer']:5.1f} %"
        if not args.no_mos:
            mos = opinions(paths)
            found |= {"dnsmos": float(mos.mean()), "dnsmos_95": interval(mos, numpy.mean)}
            line += "  DNSMOS {:.2f} ({:.2f} to {:.2f})".format(found["dnsmos"], *found["dnsmos_95"])
        if first is None:
            first = (table, heard, paths)
        else:
            both = numpy.concatenate([table, first[0]], axis=1)
            of = lambda rows: word_errors(rows[:, :4]) / max(word_errors(rows[:, 4:]), 1e-3)
            ratio = found["ratio"] = of(both)
            found["ratio_95"] = interval(both, of)
            line += "  ratio {:.2f} ({:.2f} to {:.2f})".format(ratio, *found["ratio_95"])
        result[name] = found
        print(line, flush=True)
    result["controls"], weak = controls(recogniser, said, first[1], first[2], args.other)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1, default=float) + "\n", "utf-8")
    if weak:
        print(f"error: these controls were understood, so the figures mean nothing: {', '.join(weak)}", file=sys.stderr)
        sys.exit(2)
    if args.bound and ratio is not None and ratio > args.bound:
        print(f"error: {ratio:.2f} times the word errors of the first folder, bound {args.bound:.2f}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

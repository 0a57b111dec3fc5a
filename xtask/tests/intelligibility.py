#!/usr/bin/env python3
"""Measures whether a speech recogniser understands a voice that was trained on the synthetic corpus `demo`.

In: the program and a run of `tandem train --train-data demo`. The voice speaks the 20 sentences of xtask/generators/demo_corpus/unseen_en.txt with each
English speaker. None of them is in the corpus. The recogniser (pocketsphinx with its own American English model) knows
the words of the demo corpus only, and takes all of them for equally likely: what it hears decides, not what it expects.
Out: word error rates, and with --json a file.

  recordings  the English recordings that the voice learned from
  voice       the unseen sentences, as the voice speaks them
  ratio       voice / recordings
  control     the same audio of the voice against the texts of other sentences: what a voice gets that says something else

Exit code 1: the ratio is above --bound. Exit code 2: the control is not above the bound, or another error, so that the
result means nothing.

xtask/measurements/vocoder_quality.py uses the recogniser of this file. `tandem demo` is judged by a better one: demo_voice.sh.

    pip install pocketsphinx numpy scipy soundfile
    python3 xtask/tests/intelligibility.py --tandem target/release/tandem --checkpoint tandem-demo [--bound 1.5]
"""

import argparse
import collections
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import pocketsphinx
import scipy.signal
import soundfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "crates" / "tandem" / "demo-corpus"
UNSEEN = ROOT / "xtask" / "generators" / "demo_corpus" / "unseen_en.txt"
RATE = 16000  # of the recogniser's model
END_OF_SENTENCE = 0.1  # its probability after every word

Case = collections.namedtuple("Case", "speaker words audio")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", required=True, help="the program")
    parser.add_argument("--checkpoint", required=True, help="run directory or checkpoint")
    parser.add_argument("--bound", type=float, default=1.5, help="largest ratio of the error rates")
    parser.add_argument("--json", type=pathlib.Path, help="file for the result")
    args = parser.parse_args()

    rows = english_rows("metadata_train.csv")
    vocabulary = {word for row in english_rows("metadata.csv") for word in words_of(row[2])}
    sentences = UNSEEN.read_text("utf-8").split("\n")[:-1]
    check_sentences(sentences, vocabulary)
    recogniser = open_recogniser(vocabulary)

    recorded = [Case(row[3], words_of(row[2]), recording(row)) for row in rows]
    speakers = sorted({row[3] for row in rows})
    with tempfile.TemporaryDirectory() as work:
        spoken = [
            Case(speaker, words_of(text), speak(args, text, speaker, work))
            for speaker in speakers
            for text in sentences
        ]
    heard = {"recordings": hear(recogniser, recorded), "voice": hear(recogniser, spoken)}
    # The texts of the next sentence: nothing but chance is right.
    others = [(speaker, other[1], found) for (speaker, _, found), other in shifted(heard["voice"])]
    rates = {name: error_rate(found) for name, found in heard.items()}
    ratio = rates["voice"] / rates["recordings"]
    control = error_rate(others)
    by_speaker = {
        name: {s: error_rate([one for one in found if one[0] == s]) for s in speakers}
        for name, found in heard.items()
    }
    for name, rate in rates.items():
        parts = ", ".join(f"{s} {100 * by_speaker[name][s]:.0f} %" for s in speakers)
        print(f"{name:<11} {100 * rate:5.1f} % word errors ({parts})")
    print(f"{'ratio':<11} {ratio:5.2f}   bound {args.bound:.2f}")
    print(f"{'control':<11} {100 * control:5.1f} % word errors, ratio {control / rates['recordings']:.2f}")
    if args.json:
        result = {"word_error_rate": rates, "by_speaker": by_speaker, "ratio": ratio, "control": control}
        args.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if control <= args.bound * rates["recordings"]:
        fail(2, "the control meets the bound, so the bound says nothing about the voice")
    if ratio > args.bound:
        fail(1, f"the voice has {ratio:.2f} times the word errors of its recordings, bound {args.bound:.2f}")


def fail(code, message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)


# Texts


def english_rows(manifest):
    lines = (DEMO / manifest).read_text("utf-8").splitlines()[1:]
    return [row for row in (line.split("|") for line in lines) if row[4] == "en"]


def words_of(text):
    return re.findall(r"[a-z']+", text.lower().replace("-", " "))


def check_sentences(sentences, vocabulary):
    known = {tuple(words_of(row[2])) for row in english_rows("metadata.csv")}
    for sentence in sentences:
        words = words_of(sentence)
        if tuple(words) in known:
            fail(2, f"`{sentence}` is in the corpus")
        if strange := set(words) - vocabulary:
            fail(2, f"`{sentence}` has words that the recogniser does not know: {sorted(strange)}")


# Audio


def recording(row):
    return samples_16k(DEMO / "wavs" / f"{row[0]}.flac")


def speak(args, text, speaker, work):
    path = pathlib.Path(work) / "spoken.wav"
    command = [args.tandem, "synth", "--checkpoint", args.checkpoint, "--language", "en", "--speaker", speaker]
    done = subprocess.run([*command, "--text", text, "-o", str(path)], capture_output=True, text=True)
    if done.returncode:
        fail(2, f"`{' '.join(command)}` failed:\n{done.stderr}")
    samples = samples_16k(path)
    path.unlink()
    return samples


def samples_16k(path):
    """16-bit samples at the same peak: the recogniser does not hear loudness."""
    samples, rate = soundfile.read(path, dtype="float64")
    common = math.gcd(rate, RATE)
    samples = scipy.signal.resample_poly(samples, RATE // common, rate // common)
    samples = samples / max(numpy.abs(samples).max(), 1e-6)
    return (0.7 * 32767 * samples).astype("<i2").tobytes()


# Recognition


def open_recogniser(vocabulary):
    word = math.log10((1 - END_OF_SENTENCE) / len(vocabulary))
    lines = ["\\data\\", f"ngram 1={len(vocabulary) + 2}", "", "\\1-grams:", "-99 <s>"]
    lines += [f"{math.log10(END_OF_SENTENCE):.5f} </s>"]
    lines += [f"{word:.5f} {name}" for name in sorted(vocabulary)]
    with tempfile.NamedTemporaryFile("w", suffix=".arpa") as model:
        model.write("\n".join([*lines, "", "\\end\\", ""]))
        model.flush()
        decoder = pocketsphinx.Decoder(samprate=RATE, lm=model.name, loglevel="FATAL")
    if missing := [name for name in sorted(vocabulary) if decoder.lookup_word(name) is None]:
        fail(2, f"the recogniser's dictionary lacks {missing}")
    return decoder


def hear(decoder, cases):
    """(speaker, words that were said, words that were recognised) of each case."""
    found = []
    for case in cases:
        decoder.start_utt()
        decoder.process_raw(case.audio, full_utt=True)
        decoder.end_utt()
        best = decoder.hyp()
        # A second pronunciation of a word is written `word(2)`.
        recognised = [word.split("(")[0] for word in best.hypstr.split()] if best else []
        found.append((case.speaker, case.words, recognised))
    return found


def shifted(cases):
    return zip(cases, cases[1:] + cases[:1])


def error_rate(found):
    return sum(errors(said, heard) for _, said, heard in found) / sum(len(said) for _, said, _ in found)


def errors(said, heard):
    """Insertions, deletions and substitutions (Levenshtein distance)."""
    above = list(range(len(heard) + 1))
    for row, word in enumerate(said, 1):
        current = [row]
        for column, other in enumerate(heard, 1):
            change = above[column - 1] + (word != other)
            current.append(min(above[column] + 1, current[-1] + 1, change))
        above = current
    return above[-1]


if __name__ == "__main__":
    main()

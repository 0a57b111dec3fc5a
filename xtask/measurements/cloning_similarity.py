#!/usr/bin/env python3
"""Measures how well `tandem synth --reference` copies speakers that a voice never heard.

In: the program, a voice, and a corpus of speakers that are not in the voice's corpus. For each speaker one recording is the
reference; the voice speaks the same sentences with each reference. Resemblyzer (its weights are in the package) turns
speech into speaker embeddings; similarity is the cosine of two of them.
Out: for each speaker and as means, and with --json a file:

  own         the copy against other recordings of the same speaker
  others      the copies of all other references against the same recordings: what a voice gets that ignores the reference
  gain        own - others
  recordings  the reference itself against the same recordings, and its gain: the most that a copy can have
  nearest     copies that are nearer to their speaker than to any other

Exit code 1: the mean gain is below --bound. Exit code 2: the voice knows a speaker of the corpus, or another error.

    python3 xtask/generators/make_speakers_corpus.py --out seen --part seen
    python3 xtask/generators/make_speakers_corpus.py --out unseen --part unseen --sentences 6
    tandem train --train-data seen --checkpoint-dir runs/seen --languages en --cache-dataset
    pip install resemblyzer "scipy<1.15" "setuptools<81" soundfile
    python3 xtask/measurements/cloning_similarity.py --tandem target/release/tandem --checkpoint runs/seen --corpus unseen
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import soundfile
from resemblyzer import VoiceEncoder, preprocess_wav

GENERATORS = pathlib.Path(__file__).resolve().parents[1] / "generators"
UNSEEN = GENERATORS / "demo_corpus" / "unseen_en.txt"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", required=True, help="the program")
    parser.add_argument("--checkpoint", required=True, help="run directory or checkpoint")
    parser.add_argument("--corpus", required=True, type=pathlib.Path, help="speakers that the voice never heard")
    parser.add_argument("--texts", type=int, default=3, help="sentences of each copy")
    parser.add_argument("--bound", type=float, help="smallest mean gain")
    parser.add_argument("--json", type=pathlib.Path, help="file for the result")
    args = parser.parse_args()

    recordings = recordings_by_speaker(args.corpus)
    check_unknown(args, recordings)
    texts = UNSEEN.read_text("utf-8").splitlines()[: args.texts]
    encoder = VoiceEncoder("cpu", verbose=False)
    names = list(recordings)
    references = [longest(recordings[name]) for name in names]
    truths, copies = [], []
    with tempfile.TemporaryDirectory() as work:
        for name, reference in zip(names, references):
            others = [path for path in recordings[name] if path != reference]
            truths.append(encoder.embed_speaker([preprocess_wav(path) for path in others]))
            spoken = [speak(args, text, reference, work) for text in texts]
            copies.append(encoder.embed_speaker(spoken))
    originals = [encoder.embed_utterance(preprocess_wav(path)) for path in references]
    report(args, names, of_copies=Table(copies, truths), of_originals=Table(originals, truths))


class Table:
    """Similarities of each embedding to each speaker."""

    def __init__(self, embeddings, truths):
        self.cosines = numpy.array(embeddings) @ numpy.array(truths).T
        count = len(truths)
        self.own = self.cosines.diagonal()
        self.others = (self.cosines.sum(axis=0) - self.own) / (count - 1)
        self.gain = self.own - self.others
        self.nearest = int((self.cosines.argmax(axis=1) == numpy.arange(count)).sum())


def report(args, names, of_copies, of_originals):
    width = max(len(name) for name in names)
    print(f"{'speaker':<{width}}    own  others    gain  recordings   gain")
    for row, name in enumerate(names):
        own, others, gain = of_copies.own[row], of_copies.others[row], of_copies.gain[row]
        best, most = of_originals.own[row], of_originals.gain[row]
        print(f"{name:<{width}}  {own:.3f}   {others:.3f}  {gain:+.3f}       {best:.3f} {most:+.3f}")
    mean = {
        "own": float(of_copies.own.mean()),
        "others": float(of_copies.others.mean()),
        "gain": float(of_copies.gain.mean()),
        "recordings": float(of_originals.own.mean()),
        "gain of recordings": float(of_originals.gain.mean()),
    }
    print(
        f"{'mean':<{width}}  {mean['own']:.3f}   {mean['others']:.3f}  {mean['gain']:+.3f}"
        f"       {mean['recordings']:.3f} {mean['gain of recordings']:+.3f}"
    )
    count = len(names)
    print(f"nearest to their own speaker: {of_copies.nearest} of {count} copies, {of_originals.nearest} recordings")
    if args.json:
        gains = dict(zip(names, (float(gain) for gain in of_copies.gain)))
        result = {"speakers": count, **mean, "nearest": of_copies.nearest, "gains": gains}
        args.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if args.bound is not None and not mean["gain"] >= args.bound:
        fail(1, f"a gain of {mean['gain']:.3f}, bound {args.bound:.3f}")


def recordings_by_speaker(corpus):
    found = collections.defaultdict(list)
    for manifest in ["metadata_train.csv", "metadata_eval.csv"]:
        for line in (corpus / manifest).read_text("utf-8").splitlines()[1:]:
            row = line.split("|")
            found[row[3]].append(corpus / "wavs" / f"{row[0]}.wav")
    if len(found) < 2 or min(map(len, found.values())) < 2:
        fail(2, f"`{corpus}` needs two speakers with two recordings each")
    return found


def check_unknown(args, recordings):
    """The error of an unknown speaker lists the known ones."""
    command = [args.tandem, "synth", "--checkpoint", args.checkpoint, "--text", "a", "-o", "/dev/null"]
    done = subprocess.run([*command, "--speaker", "no such speaker"], capture_output=True, text=True)
    if known := [name for name in recordings if f"`{name}`" in done.stderr]:
        fail(2, f"the voice was trained on {', '.join(known)}")


def longest(paths):
    return max(paths, key=lambda path: soundfile.info(path).duration)


def speak(args, text, reference, work):
    path = pathlib.Path(work) / "copy.wav"
    command = [args.tandem, "synth", "--checkpoint", args.checkpoint, "--language", "en", "--text", text]
    done = subprocess.run([*command, "--reference", reference, "-o", path], capture_output=True, text=True)
    if done.returncode:
        fail(2, f"`{' '.join(map(str, command))}` failed:\n{done.stderr}")
    return preprocess_wav(path)


def fail(code, message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()

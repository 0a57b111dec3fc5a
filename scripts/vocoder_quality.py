#!/usr/bin/env python3
"""Measures a neural vocoder against Griffin-Lim by copy synthesis of held-out recordings.

In: the program, a `tandem train-vocoder` run, and a corpus with metadata_eval.csv (default: the demo corpus). Every
held-out recording becomes mel frames (`tandem features`) and samples again (`tandem vocode`).
Out: a table, and with --json a file. Columns:

  distance   multi-resolution STFT distance to the recording: spectral convergence plus the mean absolute difference of
             log-magnitudes, Hann windows of 512, 1024 and 2048 samples, hop a quarter; lower is better
  pesq       wide-band PESQ at 16 kHz; higher is better
  estoi      extended short-time objective intelligibility; higher is better
  rtf        real-time factor: computing time per second of sound, all cores

With --word-errors also word error rates over all English recordings of the demo corpus and their copies, by the recogniser
of scripts/intelligibility.py. The recordings have digital silence, which a recogniser that learned from microphones does not
know: a faithful copy is understood as badly as the recording, and noise helps. So the second column adds the same faint noise
to all of them (triangular, 8 steps of 16 bits).

Exit code 1 if a target is missed: distance at most 0.5 times Griffin-Lim's, PESQ or ESTOI better than Griffin-Lim's,
real-time factor at most 0.02. The control is a vocoder after one step of training with a rate of almost zero: it must miss
the targets, or the check itself is broken (exit code 2).

    pip install numpy scipy soundfile pesq pystoi pocketsphinx
    python3 scripts/vocoder_quality.py --tandem target/release/tandem --vocoder vocoder [--limit N] [--word-errors]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# NumPy's threads would spin on the cores of the program that is timed. Set before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy
import pesq
import pystoi
import scipy.signal
import soundfile

HERE = pathlib.Path(__file__).resolve().parent
DEMO = HERE.parent / "crates" / "tandem" / "demo-corpus"
RESOLUTIONS = (512, 1024, 2048)
POWER_FLOOR = 1e-7
LARGEST_DISTANCE_SHARE, LARGEST_RTF = 0.5, 0.02
NOISE = 8 / 32768


def magnitudes(signal, n_fft):
    window = scipy.signal.get_window("hann", n_fft)
    frames = numpy.lib.stride_tricks.sliding_window_view(signal, n_fft)[:: n_fft // 4]
    power = numpy.abs(numpy.fft.rfft(frames * window)) ** 2
    return numpy.sqrt(numpy.maximum(power, POWER_FLOOR))


def distance(found, truth):
    parts = []
    for n_fft in RESOLUTIONS:
        a, b = magnitudes(found, n_fft), magnitudes(truth, n_fft)
        convergence = numpy.linalg.norm(a - b) / max(numpy.linalg.norm(b), 1.0)
        parts.append(convergence + numpy.mean(numpy.abs(numpy.log(a) - numpy.log(b))))
    return float(numpy.mean(parts))


def rate_16k(signal, rate):
    common = numpy.gcd(rate, 16000)
    return scipy.signal.resample_poly(signal, 16000 // common, rate // common)


def tandem(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tandem {' '.join(map(str, words))} failed:\n{done.stderr}")
    return done.stdout


def measure(program, vocoder, clips, folder):
    rows = []
    for name, path, mel in clips:
        truth, rate = soundfile.read(path, dtype="float64")
        copy = folder / "copy.wav"
        summary = json.loads(tandem(program, "vocode", mel, "-o", copy, "--vocoder", vocoder, "--json"))
        found, _ = soundfile.read(copy, dtype="float64")
        found = found / summary["gain"]
        length = min(len(found), len(truth))
        found, truth = found[:length], truth[:length]
        rows.append(
            {
                "clip": name,
                "distance": distance(found, truth),
                "pesq": pesq.pesq(16000, rate_16k(truth, rate), rate_16k(found, rate), "wb"),
                "estoi": float(pystoi.stoi(truth, found, rate, extended=True)),
                "took": summary["took"],
                "seconds": summary["seconds"],
            }
        )
    means = {key: float(numpy.mean([row[key] for row in rows])) for key in ("distance", "pesq", "estoi")}
    means["rtf"] = sum(row["took"] for row in rows) / sum(row["seconds"] for row in rows)
    return {"mean": means, "clips": rows}


def word_errors(program, vocoders, folder):
    """Word error rates as {name: (as it is, with noise)}: of the recordings and of each vocoder's copies of them."""
    import intelligibility

    rows = intelligibility.english_rows("metadata.csv")
    recogniser = intelligibility.open_recogniser({word for row in rows for word in intelligibility.words_of(row[2])})

    def copies(vocoder):
        for row in rows:
            path = DEMO / "wavs" / f"{row[0]}.flac"
            if vocoder:
                tandem(program, "features", path, "-o", folder / "words.npy")
                tandem(program, "vocode", folder / "words.npy", "-o", folder / "words.wav", "--vocoder", vocoder)
                path = folder / "words.wav"
            yield row, soundfile.read(path, dtype="float64")

    def rate(cases):
        return intelligibility.error_rate(intelligibility.hear(recogniser, cases))

    rates = {}
    for name, vocoder in [("recordings", None), *vocoders]:
        clean, noisy = [], []
        random = numpy.random.default_rng(0)
        for row, (samples, sample_rate) in copies(vocoder):
            noise = NOISE * (random.random(len(samples)) - random.random(len(samples)))
            for cases, audio in ((clean, samples), (noisy, samples + noise)):
                soundfile.write(folder / "heard.wav", audio, sample_rate, subtype="FLOAT")
                heard = intelligibility.samples_16k(folder / "heard.wav")
                cases.append(intelligibility.Case(row[3], intelligibility.words_of(row[2]), heard))
        rates[name] = rate(clean), rate(noisy)
    return rates


def misses(found, baseline):
    """The targets that a vocoder misses."""
    facts = []
    if found["distance"] > LARGEST_DISTANCE_SHARE * baseline["distance"]:
        share = found["distance"] / baseline["distance"]
        facts.append(f"distance is {share:.2f} times Griffin-Lim's, the target is {LARGEST_DISTANCE_SHARE}")
    if found["pesq"] <= baseline["pesq"] and found["estoi"] <= baseline["estoi"]:
        facts.append("neither PESQ nor ESTOI is better than Griffin-Lim's")
    if found["rtf"] > LARGEST_RTF:
        facts.append(f"the real-time factor is {found['rtf']:.4f}, the target is {LARGEST_RTF}")
    return facts


def untrained(program, corpus, folder):
    place = folder / "untrained"
    words = ["--train-data", corpus, "--max-steps", 1, "--lr", "1e-12", "--checkpoint-dir", place]
    tandem(program, "train-vocoder", *words, "--cache-dir", folder / "cache")
    return place


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tandem", default="tandem")
    parser.add_argument("--vocoder", required=True)
    parser.add_argument("--corpus", type=pathlib.Path, default=DEMO)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--word-errors", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    lines = (args.corpus / "metadata_eval.csv").read_text(encoding="utf-8").splitlines()[1:]
    names = [line.split("|")[0] for line in lines]
    if args.limit:
        names = names[:: max(1, len(names) // args.limit)][: args.limit]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        clips = []
        for number, name in enumerate(names):
            path = next(p for p in (args.corpus / "wavs" / f"{name}{end}" for end in (".flac", ".wav")) if p.exists())
            mel = folder / f"{number}.npy"
            tandem(args.tandem, "features", path, "-o", mel)
            clips.append((name, path, mel))
        vocoders = [
            ("griffin-lim", "griffin-lim"),
            ("neural", args.vocoder),
            ("control", untrained(args.tandem, args.corpus, folder)),
        ]
        found = {name: measure(args.tandem, vocoder, clips, folder) for name, vocoder in vocoders}
        words = word_errors(args.tandem, vocoders[:2], folder) if args.word_errors else {}
    print(f"{len(clips)} held-out recordings")
    print(f"{'':12} {'distance':>9} {'pesq':>6} {'estoi':>6} {'rtf':>7}")
    for name, result in found.items():
        mean = result["mean"]
        print(f"{name:12} {mean['distance']:9.3f} {mean['pesq']:6.2f} {mean['estoi']:6.3f} {mean['rtf']:7.4f}")
    baseline = found["griffin-lim"]["mean"]
    share = found["neural"]["mean"]["distance"] / baseline["distance"]
    print(f"distance of the neural vocoder: {share:.2f} times Griffin-Lim's")
    for name, (clean, noisy) in words.items():
        print(f"{name:12} {100 * clean:5.1f} % word errors, {100 * noisy:5.1f} % with faint noise")
    if args.json:
        args.json.write_text(json.dumps({**found, "word_errors": words}, indent=1))
    if not misses(found["control"]["mean"], baseline):
        print("the control reaches all targets: this check cannot fail", file=sys.stderr)
        return 2
    missed = misses(found["neural"]["mean"], baseline)
    for fact in missed:
        print(f"missed: {fact}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

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
of xtask/tests/intelligibility.py. The recordings have digital silence, which a recogniser that learned from microphones does not
know: a faithful copy is understood as badly as the recording, and noise helps. So faint noise is added to all of them
(triangular, 32 steps of 16 bits: of 0, 8, 32 and 128 the level at which the recordings are understood best), and the rates are
means over several seeds of it. The rates without noise are printed beside them.

Exit code 1 if a target is missed: distance at most 0.5 times Griffin-Lim's, PESQ or ESTOI better than Griffin-Lim's,
real-time factor at most 0.02, word errors not above Griffin-Lim's (by a bootstrap over the recordings: the lower end of the
95 % interval of the difference is above 0). The control is a vocoder after one step of training with a rate of almost zero: it
must miss the targets, and so must Griffin-Lim's copies in loud noise those of the words, or the check itself is broken (exit
code 2).

    pip install numpy scipy soundfile pesq pystoi pocketsphinx
    python3 xtask/measurements/vocoder_quality.py --tandem target/release/tandem --vocoder vocoder [--limit N] [--word-errors]
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "crates" / "tandem" / "demo-corpus"
RESOLUTIONS = (512, 1024, 2048)
POWER_FLOOR = 1e-7
LARGEST_DISTANCE_SHARE, LARGEST_RTF = 0.5, 0.02
NOISE = 32 / 32768
LOUD_NOISE = 1024 / 32768
NOISE_SEEDS = 4


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
    """Word errors as {name: {"clean": rate, "noisy": rate, "errors": of each recording, over all seeds of the noise}}: of the
    recordings, of each vocoder's copies of them, and of the last vocoder's copies in loud noise (`control`)."""
    import intelligibility

    rows = intelligibility.english_rows("metadata.csv")
    recogniser = intelligibility.open_recogniser({word for row in rows for word in intelligibility.words_of(row[2])})
    said = numpy.array([len(intelligibility.words_of(row[2])) for row in rows])

    def copy_of(row, vocoder):
        path = DEMO / "wavs" / f"{row[0]}.flac"
        if vocoder:
            tandem(program, "features", path, "-o", folder / "words.npy")
            tandem(program, "vocode", folder / "words.npy", "-o", folder / "words.wav", "--vocoder", vocoder)
            path = folder / "words.wav"
        return soundfile.read(path, dtype="float64")

    def errors(copies, noise, seed):
        random = numpy.random.default_rng(seed)
        cases = []
        for row, (samples, rate) in zip(rows, copies):
            faint = noise * (random.random(len(samples)) - random.random(len(samples)))
            soundfile.write(folder / "heard.wav", samples + faint, rate, subtype="FLOAT")
            heard = intelligibility.samples_16k(folder / "heard.wav")
            cases.append(intelligibility.Case(row[3], intelligibility.words_of(row[2]), heard))
        heard = intelligibility.hear(recogniser, cases)
        return numpy.array([intelligibility.errors(words, found) for _, words, found in heard])

    found = {}
    for name, vocoder in [("recordings", None), *vocoders]:
        copies = [copy_of(row, vocoder) for row in rows]
        noisy = sum(errors(copies, NOISE, seed) for seed in range(NOISE_SEEDS))
        clean = errors(copies, 0.0, 0).sum() / said.sum()
        found[name] = {"clean": clean, "noisy": noisy.sum() / said.sum() / NOISE_SEEDS, "errors": noisy}
    loud = sum(errors(copies, LOUD_NOISE, seed) for seed in range(NOISE_SEEDS))
    found["control"] = {"noisy": loud.sum() / said.sum() / NOISE_SEEDS, "errors": loud}
    for result in found.values():
        result["above"] = above(result["errors"], found["griffin-lim"]["errors"], said * NOISE_SEEDS)
        result["errors"] = result["errors"].tolist()
    return found


def above(errors, others, said, draws=10_000):
    """Difference of two word error rates, and its 95 % interval by a bootstrap over the recordings."""
    chosen = numpy.random.default_rng(0).integers(len(said), size=(draws, len(said)))
    rates = (errors - others)[chosen].sum(1) / said[chosen].sum(1)
    return [float(value) for value in ((errors - others).sum() / said.sum(), *numpy.quantile(rates, (0.025, 0.975)))]


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
        # Griffin-Lim last: its copies are those of the control.
        words = word_errors(args.tandem, vocoders[1::-1], folder) if args.word_errors else {}
    print(f"{len(clips)} held-out recordings")
    print(f"{'':12} {'distance':>9} {'pesq':>6} {'estoi':>6} {'rtf':>7}")
    for name, result in found.items():
        mean = result["mean"]
        print(f"{name:12} {mean['distance']:9.3f} {mean['pesq']:6.2f} {mean['estoi']:6.3f} {mean['rtf']:7.4f}")
    baseline = found["griffin-lim"]["mean"]
    share = found["neural"]["mean"]["distance"] / baseline["distance"]
    print(f"distance of the neural vocoder: {share:.2f} times Griffin-Lim's")
    for name, result in words.items():
        mean, low, high = (100 * value for value in result["above"])
        clean = f", {100 * result['clean']:.1f} % without noise" if "clean" in result else ""
        interval = f"{mean:+.1f} against Griffin-Lim ({low:+.1f} to {high:+.1f})"
        print(f"{name:12} {100 * result['noisy']:5.1f} % word errors in faint noise, {interval}{clean}")
    if args.json:
        args.json.write_text(json.dumps({**found, "word_errors": words}, indent=1))
    if not misses(found["control"]["mean"], baseline):
        print("the control reaches all targets: this check cannot fail", file=sys.stderr)
        return 2
    if words and words["control"]["above"][1] <= 0:
        print("loud noise does not raise the word errors: this check cannot fail", file=sys.stderr)
        return 2
    missed = misses(found["neural"]["mean"], baseline)
    if words and words["neural"]["above"][1] > 0:
        missed.append("word errors are above Griffin-Lim's")
    for fact in missed:
        print(f"missed: {fact}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

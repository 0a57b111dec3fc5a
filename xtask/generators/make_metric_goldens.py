#!/usr/bin/env python3
"""Writes crates/tandem-model/tests/goldens/metrics.json with NumPy, SciPy and librosa.

Needs librosa 0.11 and soundfile (pip install librosa==0.11.0 soundfile). Run from the root of the
repository. Independent of the Rust code: the definitions are those of the documentation.
"""

import json
import math
import pathlib

import librosa
import numpy as np
import scipy.fft
import scipy.spatial.distance
import scipy.stats
import soundfile

WAVS = pathlib.Path("crates/tandem/demo-corpus/wavs")
OUT = pathlib.Path("crates/tandem-model/tests/goldens/metrics.json")
rng = np.random.default_rng(20261116)


def mel(name, first, last):
    samples, rate = soundfile.read(WAVS / f"{name}.flac")
    values = librosa.feature.melspectrogram(
        y=samples, sr=rate, n_fft=1024, hop_length=256, power=1.0, n_mels=80, pad_mode="reflect"
    )
    return np.log(np.maximum(values, 1e-5)).T[first:last].round(3)


def cepstra(mel):
    # SciPy's unnormalised DCT-II is twice the sum.
    return scipy.fft.dct(mel, type=2, axis=1)[:, 1:14] / mel.shape[1]


def distortion(a, b, allowed):
    costs = 10 / math.log(10) * math.sqrt(2) * scipy.spatial.distance.cdist(cepstra(a), cepstra(b))
    costs = np.where(allowed, costs, np.inf)
    rows, columns = costs.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0
    for i in range(rows):
        for j in range(columns):
            total[i + 1, j + 1] = costs[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    i, j, pairs = rows, columns, 1
    while (i, j) != (1, 1):
        i, j = min([(i - 1, j - 1), (i - 1, j), (i, j - 1)], key=lambda cell: total[cell])
        pairs += 1
    return {"decibels": total[rows, columns] / pairs, "pairs": pairs}


def near_the_line(rows, columns, share):
    i, j = np.mgrid[:rows, :columns]
    slope = (columns - 1) / (rows - 1)
    return np.abs(j - i * slope) <= max(share * columns, slope, 1)


def pitch(name):
    samples, rate = soundfile.read(WAVS / f"{name}.flac")
    track, voiced, _ = librosa.pyin(samples, fmin=60, fmax=450, sr=rate, hop_length=256)
    return {"clip": f"{name}.flac", "median": float(np.median(track[voiced]))}


def alignment(symbols):
    durations = rng.integers(0, 9, symbols)
    durations[[0, -1]] = 3
    durations[symbols // 2] = 70
    path = np.repeat(np.arange(symbols), durations)
    position = np.concatenate([s + (np.arange(d) + 0.5) / d for s, d in enumerate(durations) if d])
    time = (np.arange(len(path)) + 0.5) / len(path)
    steps = np.diff(path)
    return {
        "durations": durations.tolist(),
        "coverage": float(np.mean((durations >= 1) & (durations <= 60))),
        "monotonic": float((np.sum(steps <= 1) + 2) / (len(steps) + 2)),
        "diagonality": float(max(0, 1 - 2 * np.mean(np.abs(time - position / symbols)))),
    }


def soft(frames, symbols):
    weights = rng.dirichlet(np.full(symbols, 0.2), frames).astype(np.float32).round(4)
    entropy = scipy.stats.entropy(weights.astype(np.float64), axis=1).mean() / math.log(symbols)
    return {"symbols": symbols, "weights": weights.ravel().tolist(), "entropy": float(entropy)}


def voices():
    a, b = rng.normal(size=(2, 32)).round(4)
    return {"a": a.tolist(), "b": b.tolist(), "distance": scipy.spatial.distance.cosine(a, b)}


a, b = mel("en/en_emma_001", 40, 70), mel("fa/fa_mina_001", 30, 54)
mean = a.mean(axis=0).astype(np.float32)
constant = np.linalg.norm(cepstra(mean[None]) - cepstra(b), axis=1) * math.sqrt(2)
flat = lambda values: [float(f"{value:.3f}") for value in values.ravel()]
golden = {
    "mel_a": flat(a),
    "mel_b": flat(b),
    "whole": distortion(a, b, np.full((len(a), len(b)), True)),
    "banded": distortion(a, b, near_the_line(len(a), len(b), 0.1)),
    "mean_a_of_b": float(10 / math.log(10) * constant.mean()),
    "pitch": [pitch(f"{name}_{number}") for name, number in [
        ("en/en_emma", "001"), ("en/en_jack", "002"), ("en/en_henry", "003"),
        ("fa/fa_mina", "001"), ("fa/fa_arash", "002"), ("fa/fa_darius", "003"),
    ]],
    "alignment": [alignment(symbols) for symbols in (5, 40)],
    "soft": soft(6, 9),
    "voices": voices(),
}
OUT.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
print({key: value for key, value in golden.items() if not key.startswith("mel")})

#!/usr/bin/env python3
"""Computes the golden values of crates/tandem-model/src/vocoder/griffin_lim/tests.rs.

Needs librosa 0.11 and soundfile (pip install librosa==0.11.0 soundfile). Run from the root of the
repository. Prints how well librosa.griffinlim fits the magnitudes of some clips of the demo corpus
(for the table LIBROSA), and writes crates/tandem-model/tests/goldens/vocoder.*.npy: some mel frames, and
the magnitudes and the audio that a NumPy version of our algorithm computes from them in double precision.
"""

import pathlib

import librosa
import numpy as np
import soundfile

RATE, N, HOP, BANDS, FLOOR = 22050, 1024, 256, 80, 1e-5
OUT = pathlib.Path("crates/tandem-model/tests/goldens")
WAVS = pathlib.Path("crates/tandem/demo-corpus/wavs")
CLIPS = ["en/en_emma_001", "en/en_henry_003", "fa/fa_mina_001"]
FILTERS = librosa.filters.mel(sr=RATE, n_fft=N, n_mels=BANDS, fmin=0, fmax=RATE / 2, dtype=np.float64)
WINDOW = librosa.filters.get_window("hann", N, fftbins=True)


def librosa_convergence(name):
    samples, _ = soundfile.read(WAVS / f"{name}.flac")
    wanted = np.abs(librosa.stft(samples, n_fft=N, hop_length=HOP))
    for init in (None, "random"):
        sound = librosa.griffinlim(
            wanted, n_iter=32, hop_length=HOP, n_fft=N, momentum=0.99, init=init, random_state=0
        )
        found = np.abs(librosa.stft(sound, n_fft=N, hop_length=HOP))
        found = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        print(f'("{name}.flac", {found:.4f}) with init={init}')


def source_samples(frames, length):
    """The source sample of each position of the padded signal."""
    position = np.abs(np.arange((frames - 1) * HOP + N) - N // 2) % (2 * (length - 1))
    return np.minimum(position, 2 * (length - 1) - position)


def analyse(sound, source, frames):
    blocks = np.lib.stride_tricks.sliding_window_view(sound[source], N)[:: HOP][:frames]
    return np.fft.rfft(blocks * WINDOW, axis=1)


def synthesise(spectra, source, length):
    total, weight = np.zeros(len(source)), np.zeros(len(source))
    for frame, block in enumerate(np.fft.irfft(spectra, N, axis=1)):
        total[frame * HOP : frame * HOP + N] += block * WINDOW
        weight[frame * HOP : frame * HOP + N] += WINDOW**2
    return np.bincount(source, total, length) / np.bincount(source, weight, length)


def fit(magnitudes, bands, rounds):
    share = FILTERS / np.maximum(FILTERS.sum(0), 1e-300)
    for _ in range(rounds):
        magnitudes = magnitudes * (bands / np.maximum(magnitudes @ FILTERS.T, 1e-12) @ share)
    return magnitudes


def random_phases(count):
    """SplitMix64, the top 24 bits."""
    mask, phases = 2**64 - 1, []
    for number in range(1, count + 1):
        bits = number * 0x9E3779B97F4A7C15 & mask
        bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & mask
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & mask
        phases.append(((bits ^ bits >> 31) >> 40) / 2**24 * 2 * np.pi)
    return np.array(phases)


def first_phases(magnitudes):
    frames, bins = magnitudes.shape
    bin = np.arange(bins)
    distance = np.arange(-4, 5)
    kernel = np.exp(-0.5 * (distance / 2.5) ** 2)
    sign = np.where(distance % 2 == 0, 1, -1)
    random = np.exp(1j * random_phases(8191))
    phase, phases = np.where(bin % 2 == 0, 1, -1), []
    for frame, row in enumerate(magnitudes):
        weight = row + 1e-2
        slope = np.zeros(bins)
        slope[1:-1] = (np.log(weight[2:]) - np.log(weight[:-2])) / 2
        turned = phase * np.exp(1j * (2 * np.pi * HOP / N * bin + HOP * N / (0.25645 * N * N) * slope))
        mean = np.convolve(turned * weight, kernel * sign, "same")
        total = np.convolve(weight, kernel, "same")
        phase = mean + 0.4 * total * random[(bin + 521 * frame) % 8191]
        phase = phase / np.abs(phase)
        phases.append(phase)
    return np.array(phases)


def search(magnitudes, bands, iterations, momentum, refits):
    frames = len(bands)
    length = frames * HOP - HOP // 2
    source = source_samples(frames, length)
    sound = synthesise(magnitudes * first_phases(magnitudes), source, length)
    before = 0
    for _ in range(iterations):
        own = analyse(sound, source, frames)
        step = own - momentum / (1 + momentum) * before
        before = own
        magnitudes = fit(np.maximum(np.abs(own), 1e-9), bands, refits)
        sound = synthesise(magnitudes * step / np.abs(step), source, length)
    return sound


for name in CLIPS:
    librosa_convergence(name)
samples, _ = soundfile.read(WAVS / "en/en_emma_001.flac")
spectra = np.abs(librosa.stft(samples, n_fft=N, hop_length=HOP, pad_mode="reflect"))
mel = np.log(np.maximum(FILTERS @ spectra, FLOOR)).T[60:72].astype(np.float32, order="C")
bands = np.exp(mel.astype(np.float64)) * np.clip((mel - np.log(FLOOR)) / 0.1, 0, 1)
magnitudes = fit(bands @ (FILTERS / np.maximum(FILTERS.sum(0), 1e-300)), bands, 32)
sound = search(magnitudes, bands, 6, 0.99, 2)
np.save(OUT / "vocoder.mel.npy", mel)
np.save(OUT / "vocoder.magnitudes.npy", magnitudes.astype(np.float32))
np.save(OUT / "vocoder.wav.npy", sound.astype(np.float32))

#!/usr/bin/env python3
"""Writes the golden files of crates/tandem-audio/tests/mel_goldens.rs with librosa.

Needs librosa 0.11 (pip install librosa==0.11.0). Run from the root of the repository; writes
crates/tandem-audio/tests/goldens/NAME.pcm.npy (16-bit samples) and NAME.mel.npy (float32,
[frames, bands]). The settings are those of MelConfig::SPEECH_22K.
"""

import pathlib

import librosa
import numpy as np

RATE = 22050
OUT = pathlib.Path("crates/tandem-audio/tests/goldens")


def log_mel(pcm):
    mel = librosa.feature.melspectrogram(
        y=pcm.astype(np.float64) / 32768.0,
        sr=RATE,
        n_fft=1024,
        win_length=1024,
        hop_length=256,
        window="hann",
        center=True,
        pad_mode="reflect",
        power=1.0,
        n_mels=80,
        fmin=0.0,
        fmax=RATE / 2,
        htk=False,
        norm="slaney",
        dtype=np.float64,
    )
    return np.ascontiguousarray(np.log(np.maximum(mel, 1e-5)).T.astype(np.float32))


def shorts(signal):
    return np.clip(np.round(signal * 32767.0), -32768, 32767).astype("<i2")


def signals():
    rng = np.random.default_rng(20261115)
    t = np.arange(RATE * 6 // 10) / RATE
    dither = rng.uniform(-1e-3, 1e-3, len(t))
    yield "tone_440", shorts(0.5 * np.sin(2 * np.pi * 440 * t) + dither)
    yield "chirp", shorts(0.6 * np.sin(2 * np.pi * (60 * t + 9000 * t**2)) + dither)
    voice = sum(np.sin(2 * np.pi * 130 * h * t) / h for h in range(1, 40))
    yield "voice", shorts(0.2 * voice * np.sin(2 * np.pi * 1.5 * t) ** 2 + dither)
    yield "noise", shorts(rng.uniform(-1, 1, len(t)))
    yield "quiet_noise", shorts(rng.uniform(-1e-3, 1e-3, len(t)))
    yield "clicks", shorts(np.where(np.arange(len(t)) % 1500 == 700, 0.9, 0.0))
    yield "silence", np.zeros(4000, dtype="<i2")
    yield "short_300", shorts(rng.uniform(-0.5, 0.5, 300))
    yield "short_2", shorts(np.array([0.25, -0.5]))
    yield "single", shorts(np.array([0.25]))


OUT.mkdir(parents=True, exist_ok=True)
for name, pcm in signals():
    np.save(OUT / f"{name}.pcm.npy", pcm)
    np.save(OUT / f"{name}.mel.npy", log_mel(pcm))

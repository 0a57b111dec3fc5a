#!/usr/bin/env python3
"""Writes crates/tandem-model/tests/goldens/network.json: the forward pass of a whole voice in NumPy.

Needs NumPy. Run from the root of the repository. Independent of the Rust code: the definitions are
those of ARCHITECTURE.md and of the modules' documentation, implemented again in 64 bits. Every
utterance is computed alone, without padding and masks, so the test that reads the file also checks
that a padded batch gives the same values as its rows alone.

Weights are not in the file. Both sides compute them from their names: weight `i` of tensor `name`
is `bound * uniform(name, i)`, see `weight`.
"""

import json
import math
import pathlib

import numpy as np

OUT = pathlib.Path("crates/tandem-model/tests/goldens/network.json")

CONFIG = dict(
    symbols=9,
    languages=2,
    bands=3,
    text_width=8,
    text_blocks=2,
    decoder_width=12,
    decoder_blocks=2,
    head_width=4,
    voice_width=5,
    patch=2,
)
# Two rows of different length. The second ends in the middle of a patch of the decoder (7 frames,
# patches of 2), and its reference in the middle of a patch of four.
ROWS = [
    dict(language=1, symbols=[3, 1, 8, 5, 2], durations=[2, 1, 4, 2, 3], reference=12, time=0.25),
    dict(language=0, symbols=[7, 4, 6], durations=[1, 4, 2], reference=6, time=0.625),
]
TIME_WIDTH = 64
DURATION_SHARE = 0.2


def uniform(name, count):
    """Values from -1 to 1: FNV-1a of the name, then a 32-bit mixer for each index."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 % 2**32
    values = []
    for at in range(count):
        x = (seed + at * 2654435761) % 2**32
        x = (x ^ x >> 16) * 0x045D9F3B % 2**32
        x = (x ^ x >> 16) * 0x045D9F3B % 2**32
        x ^= x >> 16
        values.append(x / 2**31 - 1)
    return np.array(values)


def weight(name, *shape):
    bound = math.sqrt(3 / shape[0]) if name.endswith("weight") else 0.5
    # The program keeps weights in 32 bits.
    values = (bound * uniform(name, math.prod(shape))).astype(np.float32)
    return values.astype(np.float64).reshape(shape)


def linear(name, x, to):
    return x @ weight(f"{name}.weight", x.shape[-1], to) + weight(f"{name}.bias", to)


def silu(x):
    return x / (1 + np.exp(-x))


def with_neighbours(x):
    none = np.zeros((1, x.shape[1]))
    return np.concatenate([np.vstack([none, x[:-1]]), x, np.vstack([x[1:], none])], axis=1)


def film(x, scale, shift):
    centred = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    return centred / deviation * (1 + scale) + shift


def rotate(x):
    """Pair (i, i + half) of position p turns by p * 10000^(-i / half)."""
    positions, width = x.shape
    half = width // 2
    angle = np.outer(np.arange(positions), 10000.0 ** (-np.arange(half) / half))
    turned = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angle)
    return np.concatenate([turned.real, turned.imag], axis=1)


def attention(packed, head):
    q, k, v = np.split(packed, 3, axis=1)
    mixed = []
    for first in range(0, q.shape[1], head):
        own = slice(first, first + head)
        scores = rotate(q[:, own]) @ rotate(k[:, own]).T / math.sqrt(head)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        mixed.append(shares / shares.sum(axis=1, keepdims=True) @ v[:, own])
    return np.concatenate(mixed, axis=1)


def block(name, x, condition):
    width = x.shape[1]
    modulation = linear(f"{name}.film", condition, 6 * width)
    scale, shift, gate, scale2, shift2, gate2 = np.split(modulation, 6)
    packed = linear(f"{name}.qkv", film(x, scale, shift), 3 * width)
    x = x + gate * linear(f"{name}.attention_out", attention(packed, CONFIG["head_width"]), width)
    hidden = silu(linear(f"{name}.ffn_in", with_neighbours(film(x, scale2, shift2)), 2 * width))
    return x + gate2 * linear(f"{name}.ffn_out", hidden, width)


def last_film(name, x, condition):
    return film(x, *np.split(linear(name, condition, 2 * x.shape[1]), 2))


def voice_of(frames):
    """Patches of four frames; an incomplete last patch is ignored."""
    width, bands = CONFIG["text_width"], CONFIG["bands"]
    patches = frames[: len(frames) // 4 * 4].reshape(-1, 4 * bands)
    x = silu(linear("encoder.reference.input", patches, width))
    x = x + silu(linear("encoder.reference.conv", with_neighbours(x), width))
    both = np.concatenate([x.mean(axis=0), np.sqrt(x.var(axis=0) + 1e-5)])
    return linear("encoder.reference.output", both, CONFIG["voice_width"])


def condition_of(voice, language):
    table = weight("encoder.languages.table", CONFIG["languages"], CONFIG["voice_width"])
    both = np.concatenate([voice, table[language]])
    return silu(linear("encoder.condition", both, CONFIG["text_width"]))


def encode_text(symbols, condition):
    width = CONFIG["text_width"]
    x = weight("encoder.text.embedding.table", CONFIG["symbols"], width)[symbols]
    x = x + silu(linear("encoder.text.conv", with_neighbours(x), width))
    for number in range(CONFIG["text_blocks"]):
        x = block(f"encoder.text.blocks.{number}", x, condition)
    hidden = last_film("encoder.text.film", x, condition)
    return hidden, linear("encoder.text.prior", hidden, CONFIG["bands"])


def durations_of(hidden):
    width = hidden.shape[1]
    x = silu(linear("durations.conv1", with_neighbours(hidden), width))
    x = silu(linear("durations.conv2", with_neighbours(x), width))
    return linear("durations.output", x, 1)[:, 0]


def time_features(time):
    half = TIME_WIDTH // 2
    angle = 1000 * time * 10000.0 ** (-np.arange(half) / half)
    return np.concatenate([np.sin(angle), np.cos(angle)])


def velocity_of(point, time, prior, hidden, condition):
    """`hidden` is one vector for each position of the decoder."""
    width, frame = CONFIG["decoder_width"], CONFIG["patch"] * CONFIG["bands"]
    seen = np.concatenate([point.reshape(-1, frame), prior.reshape(-1, frame)], axis=1)
    x = linear("decoder.input", seen, width) + linear("decoder.text", hidden, width)
    modulation = linear("decoder.time", time_features(time), width)
    modulation = silu(modulation + linear("decoder.condition", condition, width))
    for number in range(CONFIG["decoder_blocks"]):
        x = block(f"decoder.blocks.{number}", x, modulation)
    frames = linear("decoder.output", last_film("decoder.film", x, modulation), frame)
    # Noise is as wide as a frame and is removed by a separate gain.
    noise_scale = linear("decoder.noise_scale", modulation, CONFIG["bands"]) + 0.5
    return frames.reshape(-1, CONFIG["bands"]) - (point - prior) * noise_scale


def utterance(number, row):
    patch, bands = CONFIG["patch"], CONFIG["bands"]
    counts = np.array(row["durations"])
    frames = int(counts.sum())
    whole = -(-frames // patch) * patch
    # Real frames, zero-padded to a whole patch.
    mel = np.zeros((whole, bands))
    mel[:frames] = uniform(f"mel {number}", frames * bands).reshape(-1, bands).round(3)
    noise = (2 * uniform(f"noise {number}", whole * bands)).reshape(-1, bands).round(3)
    reference = uniform(f"reference {number}", row["reference"] * bands).round(3)
    voice = voice_of(reference.reshape(-1, bands))
    condition = condition_of(voice, row["language"])
    hidden, prior = encode_text(row["symbols"], condition)
    guesses = durations_of(hidden)
    # Padding frames belong to the last symbol.
    spoken = np.repeat(np.arange(len(counts)), counts)
    path = np.concatenate([spoken, np.full(whole - frames, len(counts) - 1)])
    expanded = prior[path]
    start = expanded + noise
    way = mel - start
    point = start + row["time"] * way
    velocity = velocity_of(point, row["time"], expanded, hidden[path[::patch]], condition)
    deviance = np.exp(guesses) - counts - counts * (guesses - np.log(counts))
    return dict(
        row,
        mel=mel[:frames],
        noise=noise,
        reference=reference,
        voice=voice,
        condition=condition,
        hidden=hidden,
        prior=prior,
        log_durations=guesses,
        velocity=velocity[:frames],
        losses=dict(
            prior=((expanded - mel)[:frames] ** 2).mean(),
            duration=DURATION_SHARE * deviance.mean(),
            flow=((velocity - way)[:frames] ** 2).mean(),
        ),
    )


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return [float(f"{number:.6g}") for number in value.ravel()]
    return float(f"{value:.8g}") if isinstance(value, float) else value


golden = dict(config=CONFIG, rows=[plain(utterance(*row)) for row in enumerate(ROWS)])
OUT.write_text(json.dumps(golden) + "\n")
print(f"{OUT}: {OUT.stat().st_size} bytes")
for row in golden["rows"]:
    print(row["losses"])

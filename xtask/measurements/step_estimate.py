#!/usr/bin/env python3
"""What a training step costs on a card, for Tandem and for the same network in PyTorch, by one yardstick.

    xtask/measurements/step_estimate.py [--json] [--launches tiny=N,small=N,normal=N] [--launch-us US]

Nothing here was measured on a card. Each program is a list of operations, read from its source: matrix products with
their operations, everything else with the values that it reads and writes. The card takes the time of all operations at
the rate of its data sheet and that of all bytes at its bandwidth, one after the other, each divided by the share that good
kernels reach (the same for all programs). The host takes launches times the cost of one. A step takes the longer of both.
The shares decide the absolute times, which may be wrong by half; the ratio of two programs depends on them little.

Tandem's f32 and bf16: products of `Linear` and attention in that precision, everything else in f32 (`docs/devices.md`).
PyTorch: autocast to bf16; eager with `scaled_dot_product_attention` and fused AdamW; fused: `torch.compile` with CUDA graphs,
where element-wise operations are joined with their neighbours and the host costs nothing.
"""
import argparse
import json
from dataclasses import dataclass

# Data sheets: TFLOP/s of f32 without matrix units and of bf16 with f32 sums on matrix units (dense), GB/s.
CARDS = {
    "RTX 3060": (12.7, 25.5, 360),
    "RTX 3090": (35.6, 71.0, 936),
    "RTX 4070": (29.1, 58.3, 504),
    "RTX 4090": (82.6, 165.2, 1008),
    "A100 40 GB": (19.5, 312.0, 1555),
}
# What good kernels reach of a data sheet: products of these sizes, passes over memory.
PRODUCTS, PASSES = 0.55, 0.80
# Host time of an operation of eager PyTorch, forward, backward and optimizer alike: an assumption from its own profiles.
EAGER_SECONDS = 6e-6
SHAPES = [(16, 400), (32, 600)]
BANDS, PATCH = 80, 2
# text width, text blocks, decoder width, decoder blocks, head width: network/size.rs.
SIZES = {"tiny": (96, 3, 128, 4, 32), "small": (256, 6, 320, 6, 64), "normal": (384, 8, 512, 8, 64)}


@dataclass
class Block:
    """Values that the element-wise parts of one block read and write per position and channel, forward and backward, and
    launches. Products count their operations only: all programs read and write the same there, in their precision."""
    passes: float
    wide: float  # of them at most so many in f32 where the program is in bf16
    launches: int
    attention: float  # operations per pair of positions and channel
    scores: float  # values per pair of positions and head that go through memory


# Forward: two norms (read, write: 4), modulation as multiply and add with their reads (8), rotary positions as four
# operations on queries and keys (16), attention in and out (4), two gated additions as multiply and add (10), mask (2), a
# concatenation of three neighbours (6), SiLU on two widths (4): 54. Backward: each operation reads its gradient and what
# was saved, and writes a gradient: 1.9 times as much.
EAGER = Block(passes=54 * 2.9, wide=54 * 2.9 * 0.4, launches=75, attention=14, scores=0)
# Modulated norm (2), rotary within attention (4), gated additions (6), neighbours (4), SiLU with its bias (4): 20; the
# same backward.
FUSED = Block(passes=20 * 2.9, wide=20 * 2.9 * 0.4, launches=24, attention=14, scores=0)
# Our kernels: modulated norm, attention with rotary positions, gates and neighbours are one launch forward each; SiLU and
# bias are fused by the library. In bf16 the rounding of each product's input and output are passes of their own:
# inputs of four products (1, 1, 3, 2 widths) and outputs (3, 1, 2, 1), read in f32 and written in bf16 or back.
TANDEM = Block(passes=24 * 2.9, wide=24 * 2.9, launches=52, attention=14, scores=0)
ROUNDING = (7 + 7) * 1.5 * 3
# Before our kernels: 14 passes over scores, and each norm, modulation, gate and rotation by itself.
BEFORE = Block(passes=54 * 2.9, wide=54 * 2.9, launches=96, attention=14, scores=14)


def parameters(size):
    text, text_blocks, width, blocks, _ = SIZES[size]
    one = lambda width, condition: 12 * width * width + 6 * condition * width
    heads = 8 * BANDS * width + 12 * text * text + 4 * width * width + 200 * text
    return text_blocks * one(text, text) + blocks * one(width, width) + heads


def step(size, rows, frames, block, bf16, card, launches, launch_seconds):
    """Seconds of card and host, operations, bytes, launches."""
    f32, matrix, bandwidth = CARDS[card]
    rate = (matrix if bf16 else f32) * 1e12 * PRODUCTS
    text, text_blocks, width, blocks, head = SIZES[size]
    flops = moved = 0.0
    for w, count, positions in [(text, text_blocks, frames // 5), (width, blocks, frames // PATCH)]:
        tokens = rows * positions
        flops += count * tokens * (3 * 24 * w * w + block.attention * positions * w)
        values = count * tokens * w
        narrow = 2 if bf16 else 4
        moved += values * (block.wide * 4 + (block.passes - block.wide) * narrow)
        if bf16 and block is TANDEM:
            moved += values * ROUNDING * 4
        # Inputs and outputs of products, forward and twice backward.
        moved += values * 14 * 3 * narrow
        moved += count * rows * positions * positions * (w // head) * block.scores * 4
    # Input and output of the decoder, losses, noise and the point of the flow: 30 passes over frames.
    flops += 3 * rows * frames * 2 * (3 * BANDS) * width
    moved += rows * frames * BANDS * 30 * 4
    # AdamW, clipping and moving average: 9 values per parameter; eager has a pass each for norm, clipping and average.
    moved += parameters(size) * 4 * (14 if block is EAGER else 20 if block is BEFORE else 10)
    own = (text_blocks + blocks) * block.launches + 90
    count = launches or own
    card_seconds = flops / rate + moved / (bandwidth * 1e9 * PASSES)
    return card_seconds, count * launch_seconds, flops, moved, count


def programs(size, arguments):
    counted = dict(part.split("=") for part in arguments.launches.split(",") if part)
    launches = int(counted.get(size, 0))
    us = arguments.launch_us * 1e-6
    return [
        ("Tandem f32, before its own kernels", BEFORE, False, 0, us),
        ("Tandem f32", TANDEM, False, launches, us),
        ("Tandem bf16 in products", TANDEM, True, launches, us),
        ("PyTorch eager bf16", EAGER, True, 0, EAGER_SECONDS),
        ("PyTorch fused bf16, graphs", FUSED, True, 0, 0.0),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", default="", metavar="SIZE=N,...", help="counted by `tandem bench launches`")
    parser.add_argument("--launch-us", type=float, default=8.0, help="host time of a launch of Tandem (default 8)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = []
    for size in SIZES:
        for rows, frames in SHAPES:
            for name, block, bf16, launches, us in programs(size, arguments):
                for card in CARDS:
                    on_card, host, flops, moved, count = step(size, rows, frames, block, bf16, card, launches, us)
                    found.append({"size": size, "rows": rows, "frames": frames, "program": name, "card": card,
                                  "card_ms": 1e3 * on_card, "host_ms": 1e3 * host, "gflop": flops / 1e9,
                                  "gb": moved / 1e9, "launches": count})
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    print("| voice, batch | program | GFLOP; GB; launches | " + " | ".join(CARDS) + " |")
    print("|---|---|---|" + "---|" * len(CARDS))
    for at in range(0, len(found), len(CARDS)):
        some = found[at:at + len(CARDS)]
        first = some[0]
        times = (f"**{one['host_ms']:.1f}**" if one["host_ms"] > one["card_ms"] else f"{one['card_ms']:.1f}" for one in some)
        print(f"| {first['size']}, {first['rows']} x {first['frames']} | {first['program']} | {first['gflop']:.0f}; "
              f"{first['gb']:.1f}; {first['launches']} | " + " | ".join(times) + " |")
    print("\nMilliseconds of a step; bold: the host takes longer than the card.")


if __name__ == "__main__":
    main()

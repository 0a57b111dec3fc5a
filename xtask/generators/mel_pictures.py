#!/usr/bin/env python3
"""Draws the mel frames of a held-out recording of the demo corpus, and of voices that speak its text.

In: the program, and runs on the demo corpus with a name each. Out: one PNG, a panel for the recording and one for each
voice: time from left to right (a quarter of a second between two marks), bands from low to high, from -11.5 (black) to
1.5 (white). docs/images/mel.png was made so, see docs/training.md:

    tandem train --train-data demo --batch-size 8 --max-steps 600 --pronunciation characters --checkpoint-dir before
    tandem train --train-data demo --batch-size 8 --max-steps 1800 --checkpoint-dir now
    pip install pillow numpy
    python3 xtask/generators/mel_pictures.py --tandem target/release/tandem -o docs/images/mel.png \\
        "before: characters, 600 steps=before" "now: phonemes, 1800 steps=now"
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy
from PIL import Image, ImageDraw, ImageFont

DEMO = pathlib.Path(__file__).resolve().parents[2] / "crates" / "tandem" / "demo-corpus"
FRAMES_PER_SECOND = 22050 / 256
LOWEST, HIGHEST = -11.5, 1.5
ACROSS, UP = 3, 2  # pixels of a frame and of a band
MARGIN, TITLE = 8, 18
# Colours at equal distances, from the lowest to the highest value.
COLOURS = [(0, 0, 8), (66, 10, 104), (147, 38, 103), (221, 81, 58), (252, 165, 10), (252, 255, 200)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tandem", required=True, help="the program")
    parser.add_argument("--row", default="en/en_henry_014", help="row of metadata_eval.csv")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("voices", nargs="+", metavar="TITLE=RUN")
    args = parser.parse_args()
    rows = [line.split("|") for line in (DEMO / "metadata_eval.csv").read_text("utf-8").splitlines()]
    row = next(row for row in rows if row[0] == args.row)
    with tempfile.TemporaryDirectory() as work:
        mel = pathlib.Path(work) / "mel.npy"
        run(args.tandem, "features", DEMO / "wavs" / f"{row[0]}.flac", "-o", mel)
        panels = [(f"recording: {row[1]}", numpy.load(mel))]
        for voice in args.voices:
            title, _, checkpoint = voice.rpartition("=")
            words = ["--text", row[1], "--speaker", row[3], "--language", row[4], "--mel", mel]
            run(args.tandem, "synth", "--checkpoint", checkpoint, *words, "-o", mel.with_suffix(".wav"))
            panels.append((title, numpy.load(mel)))
    draw(panels).save(args.output, optimize=True)
    print(f"{args.output}: {len(panels)} panels")


def run(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def draw(panels):
    bands = panels[0][1].shape[1]
    width = 2 * MARGIN + ACROSS * max(len(mel) for _, mel in panels)
    height = TITLE + UP * bands + MARGIN
    sheet = Image.new("RGB", (width, height * len(panels) + MARGIN), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for number, (title, mel) in enumerate(panels):
        top = number * height + MARGIN
        pen.text((MARGIN, top - 2), title, "black", font)
        sheet.paste(picture(mel), (MARGIN, top + TITLE))
        for mark in range(int(len(mel) / FRAMES_PER_SECOND * 4) + 1):
            across = MARGIN + round(mark * FRAMES_PER_SECOND / 4 * ACROSS)
            pen.line([(across, top + height - MARGIN - 3), (across, top + height - MARGIN)], "black")
    return sheet


def picture(mel):
    place = numpy.clip((mel.T[::-1] - LOWEST) / (HIGHEST - LOWEST), 0, 1) * (len(COLOURS) - 1)
    steps = numpy.arange(len(COLOURS))
    colours = numpy.array(COLOURS)
    pixels = numpy.stack([numpy.interp(place, steps, colours[:, part]) for part in range(3)], axis=-1)
    large = pixels.repeat(UP, axis=0).repeat(ACROSS, axis=1)
    return Image.fromarray(large.round().astype(numpy.uint8), "RGB")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Generates the built-in corpus `demo-human`: crates/tandem/demo-human.

In: a folder with the recordings of one human speaker in LJSpeech layout (metadata.csv, wavs/ID.flac, 22.05 kHz mono; the
README of the output says which), and crates/tandem/demo-corpus, whose Persian clips are listed too, without a copy.
Out: wavs/en/*.ogg and three manifests, all rewritten. The choice of sentences follows from a hash of their names. The same
version of oggenc gives the same bytes. Needs Debian's `flac` and `vorbis-tools`, no Python package.

    python3 xtask/generators/make_human_demo.py FOLDER [--out DIR]
"""

import argparse
import hashlib
import multiprocessing
import pathlib
import subprocess
import sys

CRATE = pathlib.Path(__file__).resolve().parents[2] / "crates" / "tandem"
SPEAKER = "kathleen"
MINUTES = 36  # to train on
HELD_OUT = 40  # sentences
HELD_OUT_WORDS = range(5, 21)
SECONDS = (1.5, 6.0)
QUALITY = "5"  # of Vorbis: about 60 kbit/s


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recordings", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=CRATE / "demo-human")
    args = parser.parse_args()

    lines = (args.recordings / "metadata.csv").read_text("utf-8").splitlines()
    texts = dict(line.split("|")[:2] for line in lines)
    shuffled = sorted(texts, key=lambda name: hashlib.sha256(name.encode()).digest())
    lengths = {name: length(args.recordings / "wavs" / f"{name}.flac") for name in shuffled}
    usable = [name for name in shuffled if SECONDS[0] <= lengths[name] <= SECONDS[1]]
    held_out = [name for name in usable if len(texts[name].split()) in HELD_OUT_WORDS][:HELD_OUT]
    chosen, total = [], 0
    for name in usable:
        if name not in held_out and texts[name] not in {texts[one] for one in held_out} and total < 60 * MINUTES:
            chosen.append(name)
            total += lengths[name]

    folder = args.out / "wavs" / "en"
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.iterdir():
        stale.unlink()
    jobs = [(args.recordings / "wavs" / f"{name}.flac", folder / f"{name}.ogg") for name in chosen + held_out]
    with multiprocessing.Pool() as pool:
        pool.starmap(encode, jobs)
    write_manifests(args.out, texts, sorted(chosen), sorted(held_out))
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{len(chosen)} clips ({total / 60:.1f} min) and {len(held_out)} held out, {size / 1e6:.1f} MB in {args.out}")


def length(path):
    """Seconds, from the header of a FLAC file."""
    header = path.read_bytes()[:26]
    if header[:4] != b"fLaC":
        sys.exit(f"error: {path} is no FLAC file")
    rate = int.from_bytes(header[18:21], "big") >> 4
    return (int.from_bytes(header[21:26], "big") & 0xFFFFFFFFF) / rate


def encode(source, target):
    decoded = subprocess.run(["flac", "--decode", "--silent", "--stdout", source], check=True, capture_output=True).stdout
    command = ["oggenc", "--quiet", "--serial", "1", "--discard-comments", "-q", QUALITY, "-o", target, "-"]
    subprocess.run(command, check=True, input=decoded)


def write_manifests(out, texts, chosen, held_out):
    row = lambda name: f"en/{name}|{texts[name]}|{texts[name]}|{SPEAKER}|en"
    for part, names in (("", chosen + held_out), ("_train", chosen), ("_eval", held_out)):
        file = f"metadata{part}.csv"
        head, *others = (CRATE / "demo-corpus" / file).read_text("utf-8").splitlines()
        persian = [line for line in others if line.endswith("|fa")]
        (out / file).write_text("\n".join([head, *map(row, names), *persian]) + "\n", "utf-8")


if __name__ == "__main__":
    main()

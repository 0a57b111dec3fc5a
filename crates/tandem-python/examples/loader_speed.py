"""Measures `tandem.Loader` against a PyTorch `DataLoader` that does the same work, on the built-in corpus repeated.

    pip install torch soundfile
    python loader_speed.py                    13,000 rows, 2 workers; a few minutes
    python loader_speed.py --recordings wav   the same as WAV files, as LJSpeech has them
    python loader_speed.py --rows 1500 --rounds 1 --at-least 0

The `DataLoader` is that of `train_loop.py`: soundfile, `torch.stft`, mel filters, logarithm, padding. Before anything is
timed, its frames are compared with those of `tandem.Loader`. The loaders take turns of equal time within a round, so that a
slow moment of the machine meets all of them; the median of the rounds counts. The start of a turn is not counted: batches
that were ready before it, and the time in which the workers of the last loader still fill its queue. Exits with 1 if one of
the two ways of `tandem.Loader` is less than `--at-least` times as fast as the `DataLoader`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

import numpy
import soundfile
import tandem
import torch
from train_loop import Recordings, pad, repeated

#: The start of a turn: so many batches, and so many seconds at least.
READY, SETTLED = 24, 0.3


class StoredFrames(torch.utils.data.Dataset):
    """The same frames, read from one NumPy file for each row: what a script may have as a cache."""

    def __init__(self, recordings: Recordings, directory: Path) -> None:
        self.files: List[Path] = []
        stored: Dict[int, Path] = {}
        for index, path in enumerate(recordings.rows):
            file = directory / f"{index}.npy"
            # Repeated rows are links to one recording.
            first = stored.setdefault(path.stat().st_ino, file)
            if first is file:
                numpy.save(file, recordings[index].numpy())
            else:
                link(first, file)
            self.files.append(file)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(numpy.load(self.files[index]))


def main() -> int:
    args = arguments()
    with contextlib.ExitStack() as stack:
        room = Path(args.room or stack.enter_context(tempfile.TemporaryDirectory(prefix="tandem-loader-speed-")))
        corpus = repeated_corpus(room / "corpus", args.rows, args.recordings)
        caches = {stored: room / f"cache-{stored}" for stored in (False, True)}
        for stored, cache in caches.items():
            began = time.perf_counter()
            usable = tandem.prepare(corpus, cache_dir=cache, cache_dataset=stored, num_workers=args.num_workers).usable
            what = "text and mel frames" if stored else "text"
            print(f"prepared {usable} rows ({what}) in {time.perf_counter() - began:.1f} s")
        recordings = Recordings(corpus)
        frames = room / "frames"
        frames.mkdir(exist_ok=True)
        stored_frames = StoredFrames(recordings, frames)

        def loader(stored: bool) -> tandem.Loader:
            return tandem.Loader(
                corpus,
                batch_size=args.batch_size,
                num_workers=args.num_workers,
                cache_dataset=stored,
                cache_dir=caches[stored],
                split="all",
            )

        compare(loader(False), recordings)
        turns: Dict[str, Iterator[Any]] = {
            "DataLoader": torch_batches(recordings, args),
            "tandem.Loader": tandem_batches(loader(False)),
            "tandem.Loader, cache_dataset": tandem_batches(loader(True)),
            "DataLoader, frames in .npy files": torch_batches(stored_frames, args),
        }
        rates: Dict[str, List[float]] = {name: [] for name in turns}
        for _ in range(args.rounds):
            for name, batches in turns.items():
                rates[name].append(turn(batches, args.seconds))
        return report(rates, args)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=13_000)
    parser.add_argument("--recordings", choices=("flac", "wav"), default="flac", help="those of the built-in corpus are FLAC")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a turn")
    parser.add_argument("--at-least", type=float, default=8.0, help="the gain to reach")
    parser.add_argument("--room", type=Path, help="directory for corpus and caches, kept; default: a temporary one")
    return parser.parse_args()


def repeated_corpus(place: Path, rows: int, recordings: str) -> Path:
    """The built-in corpus again and again: each row has a file of its own, a link where the file system allows."""
    if place.exists():
        return place
    demo = Path(tandem.prepare("demo").corpus)
    header, *lines = (demo / "metadata.csv").read_text(encoding="utf-8").splitlines()
    draft = place.with_name(place.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    manifest = [header]
    for number in range(rows):
        again, row = divmod(number, len(lines))
        name, rest = lines[row].split("|", 1)
        file = draft / "wavs" / f"{again:03}" / f"{name}.{recordings}"
        file.parent.mkdir(parents=True, exist_ok=True)
        source = demo / "wavs" / f"{name}.flac"
        if again > 0:
            link(draft / "wavs" / "000" / f"{name}.{recordings}", file)
        elif recordings == "wav":
            samples, rate = soundfile.read(str(source), dtype="int16")
            soundfile.write(str(file), samples, rate, subtype="PCM_16")
        else:
            link(source, file)
        manifest.append(f"{again:03}/{name}|{rest}")
    (draft / "metadata.csv").write_text("\n".join(manifest) + "\n", encoding="utf-8")
    draft.rename(place)
    return place


def link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def torch_batches(dataset: Any, args: argparse.Namespace) -> Iterator[Any]:
    loader = torch.utils.data.DataLoader(
        dataset, args.batch_size, shuffle=True, num_workers=args.num_workers, collate_fn=pad, persistent_workers=True
    )
    return iter(repeated(loader))


def tandem_batches(loader: tandem.Loader) -> Iterator[Any]:
    return (batch.torch() for batch in repeated(loader))


def compare(loader: tandem.Loader, recordings: Recordings) -> None:
    """Both must compute the same frames."""
    index = {"/".join(path.parts[-3:]).rsplit(".", 1)[0]: number for number, path in enumerate(recordings.rows)}
    batch = next(iter(loader))
    largest = 0.0
    for row, name in enumerate(batch.ids):
        wanted = recordings[index[name]].numpy()
        found = batch.mel[row, : batch.mel_lengths[row]]
        if found.shape != wanted.shape:
            raise SystemExit(f"{name}: {found.shape} frames, the DataLoader has {wanted.shape}")
        largest = max(largest, float(numpy.abs(found - wanted).max()))
    print(f"largest difference of mel frames between the two: {largest:.1e}")
    if not largest < 1e-2:
        raise SystemExit("the loaders do different work")
    loader.close()


def turn(batches: Iterator[Any], seconds: float) -> float:
    """Utterances per second."""
    settled = time.perf_counter() + SETTLED
    for _ in range(READY):
        next(batches)
    while time.perf_counter() < settled:
        next(batches)
    seen, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        seen += len(next(batches)["mel"])
    return seen / (time.perf_counter() - began)


def report(rates: Dict[str, List[float]], args: argparse.Namespace) -> int:
    middle = {name: statistics.median(found) for name, found in rates.items()}
    base = middle["DataLoader"]
    print(f"utterances a second, {args.num_workers} workers, batches of {args.batch_size}, {args.rounds} rounds:")
    for name, found in rates.items():
        spread = f"{min(found):.0f} to {max(found):.0f}"
        print(f"{name:<34}{middle[name]:8.0f}   ({spread})   {middle[name] / base:6.1f} times")
    slow = [name for name in middle if name.startswith("tandem") and middle[name] < args.at_least * base]
    for name in slow:
        print(f"fault: {name} is less than {args.at_least:g} times as fast", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

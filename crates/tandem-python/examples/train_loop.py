"""A plain PyTorch training loop that switches from `DataLoader` to `tandem.Loader`, and prints the gain it measured.

    pip install torch soundfile
    python train_loop.py my-corpus            a corpus in LJSpeech layout; default: the built-in one
    python train_loop.py my-corpus --steps 50 --num-workers 2

Both loaders do the same work: they read recordings, compute log-mel frames and pad them to a batch. The model is a stand-in
of two layers; put your own in its place. What changes in a script are the five lines between the marks.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List

import tandem
import torch

RATE, N_FFT, HOP, BANDS = 22050, 1024, 256, 80


class Recordings(torch.utils.data.Dataset):
    """What a script has today: soundfile and a short-time Fourier transform."""

    def __init__(self, corpus: Path) -> None:
        wanted = {".wav", ".flac", ".ogg"}
        self.rows = sorted(path for path in corpus.rglob("wavs/**/*") if path.suffix in wanted)
        if not self.rows:
            raise SystemExit(f"no recordings in {corpus / 'wavs'}")
        self.window = torch.hann_window(N_FFT)
        self.filters = mel_filters()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        import soundfile

        samples, _ = soundfile.read(str(self.rows[index]), dtype="float32")
        spectrum = torch.stft(
            torch.from_numpy(samples), N_FFT, HOP, window=self.window, center=True, return_complex=True
        ).abs()
        return (self.filters @ spectrum).clamp_min(1e-5).log().T


def mel_filters() -> torch.Tensor:
    """Triangles on the Slaney scale, as `librosa.filters.mel` makes them."""
    hz = torch.linspace(0, RATE / 2, N_FFT // 2 + 1, dtype=torch.float64)
    top = 15.0 + torch.log(torch.tensor(RATE / 2 / 1000.0, dtype=torch.float64)) * 27.0 / 1.8562979903656263
    mels = torch.linspace(0, float(top), BANDS + 2, dtype=torch.float64)
    edges = torch.where(mels < 15.0, mels * 200.0 / 3.0, 1000.0 * torch.exp((mels - 15.0) * 1.8562979903656263 / 27.0))
    rising = (hz - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - hz) / (edges[2:] - edges[1:-1])[:, None]
    areas = 2.0 / (edges[2:] - edges[:-2])
    return (torch.minimum(rising, falling).clamp_min(0) * areas[:, None]).float()


def pad(rows: List[torch.Tensor]) -> Dict[str, torch.Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    return {"mel": torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-11.5), "mel_lengths": lengths}


def train(batches: Iterable[Any], model: torch.nn.Module, steps: int, skip: int) -> float:
    """Utterances per second, without the first `skip` steps: workers need time to start."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    seen, began = 0, time.perf_counter()
    for step, batch in enumerate(batches):
        if step == skip:
            seen, began = 0, time.perf_counter()
        mel = batch["mel"]
        loss = (model(mel) - mel).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(mel)
        if step + 1 == steps:
            break
    return seen / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", default="demo")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--cache-dir", type=Path)
    args = parser.parse_args()
    corpus = Path(tandem.prepare(args.corpus, cache_dir=args.cache_dir, cache_dataset=True).corpus)
    torch.manual_seed(0)
    # The model takes next to no time, so that the loaders are compared and not the model.
    model = torch.nn.Linear(BANDS, BANDS)

    # before: ------------------------------------------------------------
    dataset = Recordings(corpus)
    before = torch.utils.data.DataLoader(
        dataset, args.batch_size, shuffle=True, num_workers=args.num_workers, collate_fn=pad, persistent_workers=True
    )
    # --------------------------------------------------------------------

    # after: -------------------------------------------------------------
    after = tandem.Loader(
        corpus, batch_size=args.batch_size, num_workers=args.num_workers, cache_dataset=True, cache_dir=args.cache_dir
    )
    batches = lambda: (batch.torch() for batch in repeated(after))  # noqa: E731
    # --------------------------------------------------------------------

    steps, skip = args.steps, max(1, args.steps // 10)
    slow = train(repeated(before), model, steps, skip)
    fast = train(batches(), model, steps, skip)
    print(f"DataLoader      {slow:10.0f} utterances a second ({args.num_workers} worker processes)")
    print(f"tandem.Loader   {fast:10.0f} utterances a second ({args.num_workers} worker threads)")
    print(f"gain            {fast / slow:10.1f} times")
    print()
    print(after.report())


def repeated(batches: Any) -> Any:
    while True:
        yield from batches


if __name__ == "__main__":
    main()

"""``tandem.Loader``: batches of prepared speech for any trainer."""

from __future__ import annotations

import json
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type, Union

from tandem import _native
from tandem._table import PathLike, Table, as_json, check_path, check_progress, corpus_name, settings_tree
from tandem.corpus import Progress, corpus_keys
from tandem.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Batch", "Loader", "Report"]

_FIELDS = ("text_ids", "text_lengths", "mel", "mel_lengths", "speaker", "language")


class Batch(Mapping[str, Any]):
    """One padded batch. The arrays use Tandem's memory in place and keep it alive.

    A batch is also a mapping of its arrays and ``ids``, in the order of the fields below.
    """

    __slots__ = ("epoch", "index", "ids", *_FIELDS)

    #: The epoch, from 0.
    epoch: int
    #: The number of the batch in its epoch, from 0.
    index: int
    #: The ids of the utterances. With static shapes, arrays may have further rows, which are empty.
    ids: List[str]
    #: Symbols, ``[rows, symbols]``, padded with 0.
    text_ids: npt.NDArray[np.int32]
    #: Symbols of each row, ``[rows]``; 0 in an empty row.
    text_lengths: npt.NDArray[np.int32]
    #: Log-mel frames, ``[rows, frames, bands]``, padded with silence.
    mel: npt.NDArray[np.float32]
    #: Frames of each row, ``[rows]``; 0 in an empty row.
    mel_lengths: npt.NDArray[np.int32]
    #: Index into ``Loader.speakers``, ``[rows]``.
    speaker: npt.NDArray[np.int32]
    #: Index into ``Loader.languages``, ``[rows]``.
    language: npt.NDArray[np.int32]

    def __init__(self, epoch: int, index: int, ids: List[str], arrays: Sequence[Any]) -> None:
        # NumPy takes longer to import than the first batch to load.
        import numpy

        self.epoch, self.index, self.ids = epoch, index, ids
        for name, array in zip(_FIELDS, arrays):
            setattr(self, name, numpy.asarray(array))

    def __getitem__(self, name: str) -> Any:
        if name in _FIELDS or name == "ids":
            return getattr(self, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*_FIELDS, "ids"))

    def __len__(self) -> int:
        return len(_FIELDS) + 1

    def torch(self, device: Any = None, non_blocking: bool = False) -> Dict[str, Any]:
        """The arrays as PyTorch tensors. On the CPU they share the memory of the batch."""
        import torch

        tensors = {name: torch.from_numpy(getattr(self, name)) for name in _FIELDS}
        if device is None:
            return tensors
        return {name: tensor.to(device, non_blocking=non_blocking) for name, tensor in tensors.items()}

    def __repr__(self) -> str:
        rows, frames, bands = self.mel.shape
        return f"<tandem.Batch {self.index} of epoch {self.epoch}: {rows} rows, {frames} frames, {bands} bands>"


class Report:
    """The report of a run: the same figures, verdict and advice as ``tandem report``."""

    def __init__(self, text: str, data: Mapping[str, Any]) -> None:
        self._text = text
        #: Everything, as ``tandem report --json`` prints it.
        self.data = data

    @property
    def verdict(self) -> Mapping[str, Any]:
        """What holds the run back, and what to change."""
        found: Mapping[str, Any] = self.data["verdict"]
        return found

    @property
    def steps(self) -> Optional[Mapping[str, Any]]:
        """Step times and throughput; none before the first finished step."""
        found: Optional[Mapping[str, Any]] = self.data["steps"]
        return found

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<tandem.Report\n{self._text}\n>"


class Loader:
    """An iterable of batches; takes the place of a PyTorch ``DataLoader``.

    One iteration is one epoch. The order follows from ``seed`` and epoch alone: any number of workers gives
    the same batches. Workers are threads without the interpreter's lock; they run on into the next epoch.

    Arguments have the names of the program's flags; ``config`` may hold any other setting, as a
    :class:`tandem.Config`, a dict or the path of a file. Two defaults differ from the program, because a loop of
    your own expects it: batches are padded to their own longest row (``enable_static_shapes=False``), and workers
    stay as many as you ask for (``adapt=False``).

    ``split`` is ``train``, ``eval`` or ``all``. ``record`` names a file for the run record, which
    ``tandem watch`` can follow; without it the record is temporary.

    * Iterating again ends the iteration before. An epoch left with ``break`` begins again.
    * A loader belongs to its process: after a fork, create it in the child. It cannot be pickled.
    * ``close()``, leaving a ``with`` block, or dropping the loader ends its threads.
    """

    def __init__(
        self,
        corpus: PathLike,
        *,
        config: Union[None, Table, Mapping[str, Any], PathLike] = None,
        batch_size: Optional[int] = None,
        frame_budget: Optional[int] = None,
        num_workers: Optional[int] = None,
        prefetch_buffer_size: Optional[int] = None,
        buffer_size: Optional[int] = None,
        seed: Optional[int] = None,
        cache_dataset: Optional[bool] = None,
        cache_dir: Optional[PathLike] = None,
        languages: Optional[Sequence[str]] = None,
        pronunciation: Optional[str] = None,
        lexicon: Optional[PathLike] = None,
        keep_diacritics: bool = False,
        separator: Optional[str] = None,
        max_text_length: Optional[int] = None,
        max_mel_frames: Optional[int] = None,
        max_rejected: Optional[float] = None,
        stall_timeout: Optional[int] = None,
        enable_static_shapes: Optional[bool] = None,
        adapt: Optional[bool] = None,
        split: str = "train",
        record: Optional[PathLike] = None,
        progress: Optional[Progress] = None,
    ) -> None:
        keys = {
            **corpus_keys(locals()),
            "prefetch_buffer_size": prefetch_buffer_size,
            "adapt": adapt,
            "batch.batch_size": batch_size,
            "batch.frame_budget": frame_budget,
            "batch.seed": seed,
            "devices.buffer_size": buffer_size,
            "devices.enable_static_shapes": enable_static_shapes,
        }
        check_progress(progress)
        check_path("record", record)
        if not isinstance(split, str):
            raise SettingsError([f"`split` is a {type(split).__name__}"], "write `train`, `eval` or `all`")
        tree = settings_tree(config, keys)
        tree.setdefault("adapt", False)
        devices = tree.setdefault("devices", {})
        # The program's own check refuses anything else.
        if isinstance(devices, dict):
            devices.setdefault("enable_static_shapes", False)
        self._native = _native.NativeLoader(corpus_name(corpus), as_json(tree), split, record, progress)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return self._native.batches

    @property
    def utterances(self) -> int:
        """Utterances in an epoch."""
        return self._native.utterances

    @property
    def speakers(self) -> List[str]:
        """The names of the speakers, by their number; an empty name where the corpus has none."""
        return self._native.speakers

    @property
    def languages(self) -> List[str]:
        """The tags of the languages, by their number."""
        return self._native.languages

    @property
    def epoch(self) -> int:
        """The epoch under way, or the next one."""
        return self._native.epoch

    @property
    def closed(self) -> bool:
        """Whether the loader was closed."""
        return self._native.closed

    def set_epoch(self, epoch: int) -> None:
        """Chooses the next epoch. Without it, epochs follow one another.

        The epoch that comes next anyway keeps the position of :meth:`load_state_dict`.
        """
        if isinstance(epoch, bool) or not isinstance(epoch, int) or not 0 <= epoch < 2**32:
            raise SettingsError([f"the epoch is {epoch!r}"], "count epochs from 0")
        self._native.set_epoch(epoch)

    def __iter__(self) -> Iterator[Batch]:
        return _Iteration(self._native, self._native.begin())

    def state_dict(self) -> Dict[str, Any]:
        """Where the loader stands: after the last batch that was delivered.

        Made of numbers and text, so that it fits into any checkpoint.
        """
        state: Dict[str, Any] = json.loads(self._native.state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state: the next iteration delivers exactly the batches that remained.

        Corpus, split, seed and batch settings must be the same; workers and buffers may differ.
        """
        if not isinstance(state, Mapping):
            raise SettingsError([f"the state is a {type(state).__name__}"], "give what `state_dict()` returned")
        self._native.restore(as_json(state))

    def report(self) -> Report:
        """Statistics, verdict and advice so far, as ``tandem report`` prints them.

        A step lasts from one request of a batch to the next: the time your loop takes, and the time it waited.
        """
        text, data = self._native.report()
        return Report(text, json.loads(data))

    def save_record(self, path: PathLike) -> None:
        """Writes the run record so far to a file for ``tandem report``; replaces the file."""
        check_path("path", path)
        self._native.save_record(path)

    def close(self) -> None:
        """Ends the threads and completes the record. Batches, report and record stay usable."""
        self._native.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class _Iteration(Iterator[Batch]):
    """One epoch, or the rest of one."""

    __slots__ = ("_native", "_number")

    def __init__(self, native: _native.NativeLoader, number: int) -> None:
        self._native, self._number = native, number

    def __next__(self) -> Batch:
        parts = self._native.next(self._number)
        if parts is None:
            raise StopIteration
        return Batch(*parts)

"""``tandem.prepare``: reads, checks and caches a corpus."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from tandem import _native
from tandem._table import PathLike, Table, as_json, check_progress, corpus_name, settings_tree

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class RejectedRow:
    """A row that cannot be used, and why."""

    manifest: str
    line: int
    id: str
    reason: str
    message: str
    fix: str


@dataclass(frozen=True)
class Summary:
    """What a corpus holds, and what preparing it did; as ``tandem prepare --json`` prints it."""

    corpus: str
    cache: str
    rows: int
    usable: int
    rejected: int
    rebuilt: int
    recovered: int
    touched: int
    damage: Optional[str]
    train: int
    eval: int
    languages: Mapping[str, int]
    speakers: Mapping[str, int]
    sound: float
    longest_frames: int
    features: bool
    rejected_list: Optional[str]
    took: float
    rejected_rows: Sequence[RejectedRow]

    @classmethod
    def _of_json(cls, text: str) -> Summary:
        read = json.loads(text)
        read["rejected_rows"] = [RejectedRow(**row) for row in read["rejected_rows"]]
        return cls(**{field.name: read[field.name] for field in fields(cls)})


def prepare(
    corpus: PathLike,
    *,
    config: Union[None, Table, Mapping[str, Any], PathLike] = None,
    num_workers: Optional[int] = None,
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
    verify: bool = False,
    progress: Optional[Progress] = None,
) -> Summary:
    """Reads, checks and caches a corpus, as ``tandem prepare`` does.

    A second call reads the cache; only changed rows are computed again. Ctrl-C loses nothing: the next call
    continues. ``progress`` is called with the finished rows and all rows.

    Raises :class:`tandem.CorpusError` and :class:`tandem.SettingsError`.
    """
    check_progress(progress)
    keys = corpus_keys(
        num_workers=num_workers,
        cache_dataset=cache_dataset,
        cache_dir=cache_dir,
        languages=languages,
        pronunciation=pronunciation,
        lexicon=lexicon,
        keep_diacritics=keep_diacritics,
        separator=separator,
        max_text_length=max_text_length,
        max_mel_frames=max_mel_frames,
        max_rejected=max_rejected,
        stall_timeout=stall_timeout,
    )
    tree = as_json(settings_tree(config, keys))
    return Summary._of_json(_native.prepare(corpus_name(corpus), tree, verify, progress))


def corpus_keys(
    *,
    num_workers: Optional[int],
    cache_dataset: Optional[bool],
    cache_dir: Optional[PathLike],
    languages: Optional[Sequence[str]],
    pronunciation: Optional[str],
    lexicon: Optional[PathLike],
    keep_diacritics: bool,
    separator: Optional[str],
    max_text_length: Optional[int],
    max_mel_frames: Optional[int],
    max_rejected: Optional[float],
    stall_timeout: Optional[int],
) -> Mapping[str, Any]:
    """Arguments by the key of the configuration file; the names are those of the flags."""
    return {
        "num_workers": num_workers,
        "cache_dataset": cache_dataset,
        "cache_dir": cache_dir,
        "max_rejected": max_rejected,
        "pipeline.stall_timeout": stall_timeout,
        "corpus.separator": separator,
        "text.languages": languages,
        "text.pronunciation": pronunciation,
        "text.lexicon": lexicon,
        "text.diacritics": "keep" if keep_diacritics else None,
        "batch.max_text_length": max_text_length,
        "batch.max_mel_frames": max_mel_frames,
    }

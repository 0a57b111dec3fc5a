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
    keys = corpus_keys(locals())
    check_progress(progress)
    tree = as_json(settings_tree(config, keys))
    return Summary._of_json(_native.prepare(corpus_name(corpus), tree, verify, progress))


#: Keys of the configuration file by the name of the argument, which is that of the flag.
_KEYS = {
    "num_workers": "num_workers",
    "cache_dataset": "cache_dataset",
    "cache_dir": "cache_dir",
    "max_rejected": "max_rejected",
    "stall_timeout": "pipeline.stall_timeout",
    "separator": "corpus.separator",
    "languages": "text.languages",
    "pronunciation": "text.pronunciation",
    "lexicon": "text.lexicon",
    "max_text_length": "batch.max_text_length",
    "max_mel_frames": "batch.max_mel_frames",
}


def corpus_keys(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """What :func:`prepare` and :class:`tandem.Loader` have in common: their ``locals()``, by key."""
    diacritics = "keep" if arguments["keep_diacritics"] else None
    return {**{key: arguments[name] for name, key in _KEYS.items()}, "text.diacritics": diacritics}

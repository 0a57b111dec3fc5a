"""``tandem.text`` and ``tandem.features``: what a model sees of one text or one recording."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Union

from tandem import _native
from tandem._table import PathLike, Table, as_json, settings_tree
from tandem.errors import AudioError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Text", "features", "licenses", "text"]


@dataclass(frozen=True)
class Text:
    """A text as a model reads it."""

    text: str
    #: The tag of the language.
    language: str
    #: How the language was found.
    detected: str
    #: Numbers, dates and abbreviations as words.
    normalized: str
    #: IPA, where the language has phonemes.
    phonemes: Optional[str]
    #: Words whose phonemes were guessed from their letters.
    guessed: List[str]
    #: Words without phonemes: their symbols are characters.
    as_characters: List[str]
    #: Persian words with an ezafe that is not written.
    ezafe: List[str]
    #: The names of the symbols, silence at both ends included.
    symbols: List[str]
    #: The numbers of the symbols, as in ``Batch.text_ids``.
    ids: List[int]


def licenses() -> str:
    """Licences and notices of the package and of everything in it, as ``tandem licenses`` prints them."""
    return _native.licenses()


def text(
    text: str,
    *,
    language: Optional[str] = None,
    config: Union[None, Table, Mapping[str, Any], PathLike] = None,
    languages: Optional[Sequence[str]] = None,
    pronunciation: Optional[str] = None,
    lexicon: Optional[PathLike] = None,
    keep_diacritics: bool = False,
    max_text_length: Optional[int] = None,
) -> Text:
    """How a text is read, as ``tandem text`` shows it. ``language`` is detected if it is not given."""
    keys = {
        "text.languages": languages,
        "text.pronunciation": pronunciation,
        "text.lexicon": lexicon,
        "text.diacritics": "keep" if keep_diacritics else None,
        "batch.max_text_length": max_text_length,
    }
    read = _native.text(text, language, as_json(settings_tree(config, keys)))
    return Text(**json.loads(read))


def features(
    audio: Union[PathLike, npt.ArrayLike],
    *,
    rate: Optional[int] = None,
    config: Union[None, Table, Mapping[str, Any], PathLike] = None,
) -> npt.NDArray[np.float32]:
    """The log-mel frames of a recording, ``[frames, bands]``, as ``tandem features`` computes them.

    ``audio`` is the path of a file (WAV, FLAC, MP3, OGG; resampled if needed), or mono samples from -1 to 1 with
    their ``rate``, which must be that of the settings.
    """
    import numpy

    tree = as_json(settings_tree(config, {}))
    if isinstance(audio, (str, os.PathLike)):
        return numpy.asarray(_native.features_of_file(audio, tree))
    samples = numpy.asarray(audio)
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise AudioError(
            [f"the samples are an array of {samples.dtype} with {samples.ndim} dimensions"],
            "give a path, or one channel as floats from -1 to 1",
        )
    if rate is None:
        raise AudioError(["the rate of the samples is missing"], "add `rate=`, in Hz")
    contiguous = numpy.ascontiguousarray(samples, dtype=numpy.float32)
    return numpy.asarray(_native.features_of_samples(contiguous.tobytes(), rate, tree))

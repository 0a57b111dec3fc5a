"""``tandem.Voice``: speech of a trained voice."""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional

from tandem import _native
from tandem._table import PathLike
from tandem.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Speech", "Voice"]


class Speech(NamedTuple):
    """Samples from -1 to 1, and their rate in Hz. Louder parts may exceed 1."""

    samples: npt.NDArray[np.float32]
    rate: int


class Voice:
    """A trained voice. Texts are spoken one after the other, also from several threads."""

    def __init__(self, native: _native.NativeVoice) -> None:
        self._native = native
        self._about: dict[str, Any] = json.loads(native.about)
        for fact in self._about["damaged"]:
            words = f"a checkpoint is damaged and is not used: {fact}; {self.checkpoint} is used instead"
            warnings.warn(words, stacklevel=3)

    @classmethod
    def load(cls, run: PathLike, *, backend: str = "auto", gpu: Optional[int] = None) -> Voice:
        """Reads a checkpoint, or the best one of a run directory."""
        if not isinstance(run, (str, os.PathLike)):
            raise SettingsError([f"the run is a {type(run).__name__}"], "give the path of a run or a checkpoint")
        return cls(_native.NativeVoice(run, backend, gpu))

    @property
    def rate(self) -> int:
        """Samples per second."""
        return int(self._about["rate"])

    @property
    def step(self) -> int:
        """The training step of the checkpoint."""
        return int(self._about["step"])

    @property
    def checkpoint(self) -> str:
        """The checkpoint that was read."""
        return str(self._about["checkpoint"])

    @property
    def languages(self) -> List[str]:
        """The languages the voice was trained on."""
        return list(self._about["languages"])

    @property
    def speakers(self) -> List[str]:
        """The speakers the voice was trained on."""
        return list(self._about["speakers"])

    def synthesize(
        self,
        text: str,
        *,
        language: Optional[str] = None,
        reference: Optional[PathLike] = None,
        speaker: Optional[str] = None,
        speed: float = 1.0,
        seed: int = 0,
        steps: Optional[int] = None,
        temperature: Optional[float] = None,
        pause: float = 0.25,
    ) -> Speech:
        """Speaks a text: ``samples, rate = voice.synthesize("Good morning.")``.

        ``language`` is detected for each sentence if it is not given. ``reference`` is a recording of the speaker to
        imitate, ``speaker`` one of :attr:`speakers`. The same text, seed and checkpoint give the same samples.

        Raises :class:`tandem.VoiceError`.
        """
        import numpy

        memory, rate, _ = self._native.synthesize(
            text,
            language,
            reference,
            speaker,
            speed,
            seed,
            steps,
            temperature,
            pause,
        )
        return Speech(numpy.asarray(memory), rate)

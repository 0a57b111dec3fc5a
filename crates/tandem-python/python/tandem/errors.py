"""Exceptions of Tandem: what happened, what caused it, and what to do about it.

Every exception is a :class:`TandemError`. Ctrl-C is ``KeyboardInterrupt``, as everywhere in Python.
"""

from __future__ import annotations

from typing import Optional, Sequence

__all__ = [
    "TandemError",
    "SettingsError",
    "CorpusError",
    "LoaderError",
    "ForkError",
    "VoiceError",
    "TextError",
    "AudioError",
    "InternalError",
]


class TandemError(Exception):
    """Something failed: ``fact``, its ``causes``, and a ``hint`` where there is a way out."""

    def __init__(self, facts: Sequence[str], hint: Optional[str] = None) -> None:
        self.fact: str = facts[0] if facts else "unknown"
        self.causes: list[str] = list(facts[1:])
        self.hint: Optional[str] = hint
        super().__init__(facts, hint)

    def __str__(self) -> str:
        text = "\n  caused by: ".join([self.fact, *self.causes])
        return f"{text}\nhint: {self.hint}" if self.hint else text


class SettingsError(TandemError, ValueError):
    """A setting is unknown, of the wrong type or out of range."""


class CorpusError(TandemError):
    """A corpus cannot be read or prepared."""


class LoaderError(TandemError, RuntimeError):
    """A loader cannot deliver batches, or is used in a way that it does not support."""


class ForkError(LoaderError):
    """An object with threads is used in a forked process, where its threads do not exist."""


class VoiceError(TandemError):
    """A voice cannot be loaded, or cannot speak a text."""


class TextError(TandemError, ValueError):
    """A text cannot be read."""


class AudioError(TandemError):
    """A recording cannot be read."""


class InternalError(TandemError, RuntimeError):
    """A bug of Tandem. Please report it."""

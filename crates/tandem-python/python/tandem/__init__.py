"""Tandem: prepared speech for any trainer, what holds the trainer back, and voices that speak.

    import tandem

    loader = tandem.Loader("my-corpus", batch_size=16, num_workers=2)
    for batch in loader:
        train(batch.text_ids, batch.mel, batch.mel_lengths)
    print(loader.report())

The settings are those of the program ``tandem``; see ``docs/configuration.md``.
"""

from __future__ import annotations

try:
    from tandem._native import __version__
except ImportError as error:
    raise ImportError(
        f"the native part of the package `tandem` cannot be loaded: {error}\n"
        "hint: install the package again (`pip install --force-reinstall tandem-tts`); it needs the "
        "wheel for this system, and Python 3.9 or newer"
    ) from error

from tandem.errors import (
    AudioError,
    CorpusError,
    ForkError,
    InternalError,
    LoaderError,
    SettingsError,
    TandemError,
    TextError,
    VoiceError,
)
from tandem.corpus import RejectedRow, Summary, prepare
from tandem.inspect import Text, features, licenses, text
from tandem.loader import Batch, Loader, Report
from tandem.settings import (
    AlignmentConfig,
    AudioConfig,
    BatchConfig,
    Config,
    CorpusConfig,
    DataConfig,
    DevicesConfig,
    MelConfig,
    OptimizerConfig,
    PipelineConfig,
    TextConfig,
    TrainConfig,
)
from tandem.voice import Speech, Voice

__all__ = [
    "__version__",
    # the path of the data
    "prepare",
    "Summary",
    "RejectedRow",
    "Loader",
    "Batch",
    "Report",
    "licenses",
    # settings
    "Config",
    "PipelineConfig",
    "CorpusConfig",
    "TextConfig",
    "MelConfig",
    "AudioConfig",
    "BatchConfig",
    "DevicesConfig",
    "TrainConfig",
    "OptimizerConfig",
    "AlignmentConfig",
    "DataConfig",
    # voices, texts, recordings
    "Voice",
    "Speech",
    "text",
    "Text",
    "features",
    # errors
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

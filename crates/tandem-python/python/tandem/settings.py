"""The settings of Tandem as typed classes.

Written by ``xtask/generators/make_python_settings.py``; do not edit: a test compares the two.

The names are the keys of the configuration file. A field that is ``None`` keeps its default. Every class checks
its values like the command line when it is created, and again with ``validate()``; ``to_toml()`` gives a file for
``tandem ... --config``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import ClassVar, List, Literal, Optional

from tandem import _native
from tandem._table import PathLike, Table, Tree, as_json, read_tree


@dataclass
class OptimizerConfig(Table):
    """Settings of the table ``[train.optimizer]``."""

    _place: ClassVar[str] = "train.optimizer"

    #: Peak learning rate; for size tiny 0.002; with --from 0.0003. Allowed: above 0. Default: ``0.001``.
    lr: Optional[float] = None
    #: Final learning rate, as a share of the peak. Allowed: 0 to 1. Default: ``0.05``.
    final_lr: Optional[float] = None
    #: Warm-up steps until the peak learning rate; with --from 50. Allowed: 0 or more. Default: ``100``.
    warmup_steps: Optional[int] = None
    #: Steps at the peak learning rate between warm-up and decay. Allowed: 0 or more. Default: ``0``.
    hold_steps: Optional[int] = None
    #: Weight decay. Allowed: 0 or more. Default: ``0.01``.
    weight_decay: Optional[float] = None
    #: AdamW decay rate of the mean gradient. Allowed: 0 up to, not including, 1. Default: ``0.9``.
    beta1: Optional[float] = None
    #: AdamW decay rate of the mean squared gradient. Allowed: 0 up to, not including, 1. Default: ``0.98``.
    beta2: Optional[float] = None
    #: AdamW epsilon, which avoids a division by zero. Allowed: above 0. Default: ``1e-8``.
    epsilon: Optional[float] = None
    #: Gradient clipping: largest norm; 0: off. Allowed: 0 or more. Default: ``1.0``.
    clip: Optional[float] = None


@dataclass
class AlignmentConfig(Table):
    """Settings of the table ``[train.alignment]``."""

    _place: ClassVar[str] = "train.alignment"

    #: Steps between two weight snapshots of the aligner. Allowed: 1 or more. Default: ``10``.
    every: Optional[int] = None
    #: Steps between a snapshot and the first step that uses it. Allowed: 0 or more. Default: ``10``.
    lag: Optional[int] = None
    #: Steps at the start that use flat-start alignments instead of the model's; with --from 0. Allowed: 0 or
    #: more. Default: ``300``.
    flat_start: Optional[int] = None


@dataclass
class PipelineConfig(Table):
    """Settings of the table ``[pipeline]``."""

    _place: ClassVar[str] = "pipeline"

    #: Seconds without any progress after which the command ends with an error that names the stage and the
    #: file; 0: never. Allowed: 0 to 86400. Default: ``60``.
    stall_timeout: Optional[int] = None


@dataclass
class CorpusConfig(Table):
    """Settings of the table ``[corpus]``."""

    _place: ClassVar[str] = "corpus"

    #: Column separator of the manifest, ``tab`` for a tab. Default: ``"|"``.
    separator: Optional[str] = None
    #: Column with the spoken text, if a row has both. Default: ``"normalised"``.
    text_column: Optional[Literal["normalised", "text"]] = None
    #: Share of rows, below 1, held out for validation if no manifest names them. Default: ``0.05``.
    eval_share: Optional[float] = None
    #: Seed that chooses, together with the row id, which rows are held out. Allowed: 0 or more. Default: ``0``.
    seed: Optional[int] = None
    #: Language of rows without one, such as ``fa``. Default: not set.
    default_language: Optional[str] = None
    #: Layout of the corpus, where it is recognised wrongly. Default: recognised.
    layout: Optional[Literal["ljspeech", "piper", "common-voice", "vctk", "libri", "text-files", "nemo", "lhotse", "espnet", "hugging-face"]] = None
    #: Directory outside the corpus that absolute paths of a manifest may lead to. Default: not set.
    recordings_dir: Optional[PathLike] = None


@dataclass
class TextConfig(Table):
    """Settings of the table ``[text]``."""

    _place: ClassVar[str] = "text"

    #: Languages of the corpus, such as en,fa. Default: ``["en","fa"]``.
    languages: Optional[List[str]] = None
    #: Symbols of the model: ``auto`` (built-in phonemes where a language has them, else characters),
    #: ``characters``, ``built-in``, ``built-in-english`` (English only, else characters), or ``espeak``
    #: (phonemes of the program espeak-ng). Default: ``"auto"``.
    pronunciation: Optional[Literal["auto", "characters", "built-in", "built-in-english", "espeak"]] = None
    #: Pronunciation lexicon: lines of ``word<TAB>spelling``. Default: not set.
    lexicon: Optional[PathLike] = None
    #: Keep vowel marks of Persian and Arabic text. Default: ``"strip"``.
    diacritics: Optional[Literal["strip", "keep"]] = None
    #: Equals ``batch.max_text_length``: set only that key. Default: ``200``.
    max_symbols: Optional[int] = None


@dataclass
class MelConfig(Table):
    """Settings of the table ``[mel]``."""

    _place: ClassVar[str] = "mel"

    #: Sample rate of the features in Hz; recordings of other rates are resampled. Default: ``22050``.
    rate: Optional[int] = None
    #: Size of the Fourier transform in samples; even. Default: ``1024``.
    n_fft: Optional[int] = None
    #: Length of the Hann window in samples; at most ``n_fft``. Default: ``1024``.
    window: Optional[int] = None
    #: Hop size in samples; at most ``n_fft``. Allowed: 1 or more. Default: ``256``.
    hop: Optional[int] = None
    #: Number of mel bands; at most half of ``n_fft``. Allowed: 1 or more. Default: ``80``.
    bands: Optional[int] = None
    #: Lower edge of the lowest band, in Hz; below ``high``. Allowed: 0 or more. Default: ``0.0``.
    low: Optional[float] = None
    #: Upper edge of the highest band, in Hz; at most half the rate. Allowed: above 0. Default: ``11025.0``.
    high: Optional[float] = None
    #: Smallest value of a band before the logarithm. Allowed: above 0 to 1. Default: ``0.00001``.
    floor: Optional[float] = None


@dataclass
class AudioConfig(Table):
    """Settings of the table ``[audio]``."""

    _place: ClassVar[str] = "audio"

    #: Longest recording, in seconds. Default: ``120.0``.
    max_length: Optional[float] = None
    #: Shortest recording, in seconds. Default: ``0.1``.
    min_length: Optional[float] = None
    #: Largest recording file, in bytes. Allowed: 0 or more. Default: ``268435456``.
    max_file: Optional[int] = None
    #: Peak level, as a share of full scale, below which a recording counts as silent. Default: ``0.0005``.
    min_peak: Optional[float] = None
    #: Cut silence at both ends of each recording: what is DB below its loudest 20 ms, from -100 to -1, such as
    #: -40. Allowed: -100 to -1. Default: off.
    trim_silence: Optional[float] = None
    #: Silence that trimming leaves at each end, in milliseconds. Allowed: 0 to 10000. Default: ``50.0``.
    trim_margin: Optional[float] = None
    #: Bring each recording to this loudness by EBU R128, from -70 to -5 LUFS, such as -23. Allowed: -70 to -5.
    #: Default: off.
    loudness: Optional[float] = None


@dataclass
class BatchConfig(Table):
    """Settings of the table ``[batch]``."""

    _place: ClassVar[str] = "batch"

    #: Utterances in a batch, at most. Allowed: 1 or more. Default: ``16``.
    batch_size: Optional[int] = None
    #: Padded mel frames in a batch, at most. Default: batch size times longest recording.
    frame_budget: Optional[int] = None
    #: Longest recording in mel frames. Allowed: 1 or more. Default: ``800``.
    max_mel_frames: Optional[int] = None
    #: Longest text in symbols. Allowed: 1 or more. Default: ``200``.
    max_text_length: Optional[int] = None
    #: Maximum number of length buckets; their lengths are fitted to the corpus. Allowed: 1 to 64. Default:
    #: ``8``.
    max_buckets: Optional[int] = None
    #: Bucket lengths in frames, ascending, ending at ``max_mel_frames``. Default: not set.
    bucket_edges: Optional[List[int]] = None
    #: Random seed of the batch order; the flag sets ``train.seed`` too. Allowed: 0 or more. Default: ``0``.
    seed: Optional[int] = None


@dataclass
class DevicesConfig(Table):
    """Settings of the table ``[devices]``."""

    _place: ClassVar[str] = "devices"

    #: Compute backend: auto, cpu, wgpu, vulkan, metal, cuda or rocm. Default: ``"auto"``.
    backend: Optional[Literal["auto", "cuda", "rocm", "metal", "vulkan", "wgpu", "cpu"]] = None
    #: GPU for data preparation; requires --model-gpu. With several ranks on a machine: one for each, ``0,2``.
    #: Allowed: 0 or more. Default: not set.
    data_gpu: Optional[int] = None
    #: GPU for the model; requires --data-gpu. With several ranks on a machine: one for each, ``1,3``. Allowed:
    #: 0 or more. Default: not set.
    model_gpu: Optional[int] = None
    #: Samples that may wait on the host; without --prefetch-buffer-size also those that may wait for the model.
    #: Allowed: 1 or more. Default: 50 on the host.
    buffer_size: Optional[int] = None
    #: Give data and model a memory budget each, and enforce it. Default: ``false``.
    enable_memory_isolation: Optional[bool] = None
    #: Memory budget of the data side in MB, with memory isolation. Allowed: 1 to 1073741824. Default: 8192,
    #: less on a small card.
    data_gpu_memory: Optional[int] = None
    #: Memory budget of the model in MB, with memory isolation. Allowed: 1 to 1073741824. Default: 16384, less
    #: on a small card.
    model_gpu_memory: Optional[int] = None
    #: Pad batches to a small fixed set of shapes, so that kernels are compiled once. Default: ``true``.
    enable_static_shapes: Optional[bool] = None
    #: Where mel frames are computed: auto (measured at the start), host or device. Default: ``"auto"``.
    mel_on: Optional[Literal["auto", "host", "device"]] = None


@dataclass
class TrainConfig(Table):
    """Settings of the table ``[train]``."""

    _place: ClassVar[str] = "train"

    #: Model size. Default: ``"tiny"``.
    model_size: Optional[Literal["tiny", "small", "normal", "big", "micro"]] = None
    #: Optimizer steps to train; ends training before the epochs are over. Allowed: 1 or more. Default: not set.
    max_steps: Optional[int] = None
    #: Epochs to train. Allowed: 1 or more. Default: 100 without --max-steps.
    epochs: Optional[int] = None
    #: Batches whose gradients are accumulated for one optimizer step. Allowed: 1 or more. Default: ``1``.
    grad_accum: Optional[int] = None
    #: Random seed of the weights and the noise; the flag sets ``batch.seed`` too. Allowed: 0 or more. Default:
    #: ``0``.
    seed: Optional[int] = None
    #: Decay of the exponential moving average (EMA) of the weights; 0: off. Allowed: 0 up to, not including, 1.
    #: Default: ``0.999``.
    ema_decay: Optional[float] = None
    #: Validations without improvement after which training stops early; 0: never. Allowed: 0 or more. Default:
    #: 0.
    patience: Optional[int] = None
    #: Recogniser that listens to every validation: a command that gets WAV files and prints a line for each, or
    #: the address (http://) of an OpenAI-style transcription server. The best checkpoint and --patience then
    #: follow its character errors; ``none``: nobody listens. Default: none.
    judge: Optional[str] = None
    #: Consecutive steps with NaN or infinite gradients after which training fails. Allowed: 1 or more. Default:
    #: ``20``.
    nan_limit: Optional[int] = None
    #: Mixed precision: off, tf32 (an NVIDIA card since Ampere), bf16 or f16; ``off`` is ``f32`` in a file.
    #: Default: ``"f32"``.
    precision: Optional[Literal["f32", "tf32", "bf16", "f16"]] = None
    #: Launch every step of a CUDA card kernel by kernel, not as a CUDA graph; changes no bit. Default:
    #: ``false``.
    no_graphs: Optional[bool] = None
    #: Steps between two validations. Allowed: 1 or more. Default: ``500``.
    validate_every: Optional[int] = None
    #: Steps between two audio samples. Allowed: 1 or more. Default: ``1000``.
    sample_every: Optional[int] = None
    #: Steps between two checkpoints. Allowed: 1 or more. Default: ``500``.
    checkpoint_every: Optional[int] = None
    #: Checkpoints to keep, in addition to the best one. Allowed: 1 or more. Default: ``3``.
    keep: Optional[int] = None
    #: Run directory for checkpoints, audio samples and the run record. Default: a new directory runs/NAME-N,
    #: with a name from corpus, model size and batch size.
    checkpoint_dir: Optional[PathLike] = None
    #: Voice to fine-tune: a run directory of ``tandem train`` (its best checkpoint is used), or a checkpoint;
    #: size, mel settings and symbols are those of the voice. Default: not set.
    from_voice: Optional[PathLike] = None
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig())
    alignment: AlignmentConfig = field(default_factory=lambda: AlignmentConfig())


@dataclass
class Config(Table):
    """All settings: a configuration file."""

    #: Corpus to train on: a directory, a manifest in one, or ``demo``. Default: not set.
    train_data: Optional[PathLike] = None
    #: Corpus to validate on. Default: held-out rows of the training corpus.
    val_data: Optional[PathLike] = None
    #: Worker threads that load and prepare data. Allowed: 1 or more. Default: one per core.
    num_workers: Optional[int] = None
    #: Batches that may wait for the model, including the one in training. Allowed: 1 or more. Default: from
    #: --buffer-size if given, else max(2, min(8, 64 / batch size)), at least 3.
    prefetch_buffer_size: Optional[int] = None
    #: Cache mel frames on disk, so that later epochs do not compute them again. Default: ``false``.
    cache_dataset: Optional[bool] = None
    #: Cache directory. Default: inside the corpus, or the user's cache directory.
    cache_dir: Optional[PathLike] = None
    #: Largest share of rejected rows; above it the command fails. Allowed: 0 to 1. Default: ``0.2``.
    max_rejected: Optional[float] = None
    #: Adapt workers and pipeline depth during training. Default: ``true``.
    adapt: Optional[bool] = None
    #: Longest wait for the first batches before training starts, in seconds. Allowed: 0 to 86400. Default:
    #: ``2.0``.
    model_start_delay: Optional[float] = None
    pipeline: PipelineConfig = field(default_factory=lambda: PipelineConfig())
    corpus: CorpusConfig = field(default_factory=lambda: CorpusConfig())
    text: TextConfig = field(default_factory=lambda: TextConfig())
    mel: MelConfig = field(default_factory=lambda: MelConfig())
    audio: AudioConfig = field(default_factory=lambda: AudioConfig())
    batch: BatchConfig = field(default_factory=lambda: BatchConfig())
    devices: DevicesConfig = field(default_factory=lambda: DevicesConfig())
    train: TrainConfig = field(default_factory=lambda: TrainConfig())

    @classmethod
    def from_dict(cls, tree: Tree) -> Config:
        """Settings from a dict of tables, as in a configuration file."""
        _native.check_settings(as_json(tree))
        train = dict(tree.get("train", {}))
        optimizer, alignment = train.pop("optimizer", {}), train.pop("alignment", {})
        own = {key: value for key, value in tree.items() if not isinstance(value, dict)}
        return cls(
            **own,
            pipeline=PipelineConfig(**tree.get("pipeline", {})),
            corpus=CorpusConfig(**tree.get("corpus", {})),
            text=TextConfig(**tree.get("text", {})),
            mel=MelConfig(**tree.get("mel", {})),
            audio=AudioConfig(**tree.get("audio", {})),
            batch=BatchConfig(**tree.get("batch", {})),
            devices=DevicesConfig(**tree.get("devices", {})),
            train=TrainConfig(
                **train,
                optimizer=OptimizerConfig(**optimizer),
                alignment=AlignmentConfig(**alignment),
            ),
        )

    @classmethod
    def read(cls, path: PathLike) -> Config:
        """Settings from a TOML or YAML file of Tandem or MyXTTS."""
        return cls.from_dict(read_tree(path))


@dataclass
class DataConfig(Table):
    """The settings of a data pipeline under the names of MyXTTS' ``DataConfig``, for scripts that move here.

    ``to_toml()`` and ``to_config()`` use the names of Tandem.
    """

    #: ``cache_dataset``
    preprocessing_mode: Optional[str] = None
    #: ``train.precision``
    mixed_precision: Optional[bool] = None
    #: ``audio.trim_silence``
    trim_silence: Optional[bool] = None
    #: ``audio.loudness``
    normalize_audio: Optional[bool] = None
    #: ``audio.loudness``
    enable_loudness_normalization: Optional[bool] = None
    #: ``train_data``
    dataset_path: Optional[str] = None
    #: ``num_workers``
    num_workers: Optional[int] = None
    #: ``prefetch_buffer_size``
    prefetch_buffer_size: Optional[int] = None
    #: ``adapt``
    auto_tune_performance: Optional[bool] = None
    #: ``model_start_delay``
    model_start_delay: Optional[float] = None
    #: ``corpus.eval_share``
    val_split: Optional[float] = None
    #: ``corpus.default_language``
    language: Optional[str] = None
    #: ``mel.rate``
    sample_rate: Optional[int] = None
    #: ``mel.n_fft``
    n_fft: Optional[int] = None
    #: ``mel.window``
    win_length: Optional[int] = None
    #: ``mel.hop``
    hop_length: Optional[int] = None
    #: ``mel.bands``
    n_mels: Optional[int] = None
    #: ``mel.low``
    fmin: Optional[float] = None
    #: ``mel.high``
    fmax: Optional[float] = None
    #: ``audio.min_length``
    min_audio_length: Optional[float] = None
    #: ``audio.loudness``
    target_loudness_lufs: Optional[float] = None
    #: ``batch.batch_size``
    batch_size: Optional[int] = None
    #: ``batch.max_mel_frames``
    max_mel_frames: Optional[int] = None
    #: ``batch.max_text_length``
    max_text_length: Optional[int] = None
    #: ``devices.data_gpu``
    data_gpu: Optional[int] = None
    #: ``devices.model_gpu``
    model_gpu: Optional[int] = None
    #: ``devices.buffer_size``
    pipeline_buffer_size: Optional[int] = None
    #: ``devices.buffer_size``
    buffer_size: Optional[int] = None
    #: ``devices.enable_memory_isolation``
    enable_memory_isolation: Optional[bool] = None
    #: ``devices.data_gpu_memory``
    data_gpu_memory: Optional[int] = None
    #: ``devices.model_gpu_memory``
    model_gpu_memory: Optional[int] = None
    #: ``devices.enable_static_shapes``
    static_shapes: Optional[bool] = None
    #: ``devices.enable_static_shapes``
    enable_static_shapes: Optional[bool] = None
    #: ``devices.enable_static_shapes``
    pad_to_fixed_length: Optional[bool] = None
    #: ``train.grad_accum``
    gradient_accumulation_steps: Optional[int] = None

    def tree(self) -> Tree:
        """The settings under the names of Tandem, from the root of a configuration file."""
        tree: Tree = json.loads(_native.convert_settings(as_json({"data": self.to_dict()})))
        return tree

    def to_config(self) -> Config:
        """The same settings as a :class:`Config`."""
        return Config.from_dict(self.tree())

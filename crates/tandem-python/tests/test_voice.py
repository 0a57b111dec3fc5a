"""Voices, texts and recordings: the same results as the program's."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any, Callable

import numpy
import pytest
import tandem


def test_a_voice_speaks_as_the_program_does(run_directory: Path, program: Callable[..., str], tmp_path: Path) -> None:
    voice = tandem.Voice.load(run_directory, backend="cpu")
    assert voice.step == 2 and voice.rate == 22050 and "en" in voice.languages
    samples, rate = voice.synthesize("Good morning.", seed=3, speed=1.25)
    assert samples.dtype == numpy.float32 and samples.ndim == 1 and rate == 22050
    again = voice.synthesize("Good morning.", seed=3, speed=1.25)
    assert (again.samples == samples).all()

    file = tmp_path / "a.wav"
    program("synth", "--checkpoint", run_directory, "--backend", "cpu", "--text", "Good morning.", "--seed", 3,
            "--speed", 1.25, "-o", file)  # fmt: skip
    with wave.open(str(file)) as read:
        written = numpy.frombuffer(read.readframes(read.getnframes()), dtype="<i2") / 32768
    assert len(written) == len(samples)
    peak = numpy.abs(samples).max()
    gain = 0.98 / peak if peak > 0.98 else 1.0
    assert numpy.abs(written - samples * gain).max() < 1e-4


def test_languages_and_references(run_directory: Path, cache: Path) -> None:
    voice = tandem.Voice.load(run_directory, backend="cpu")
    assert len(voice.synthesize("سلام دنیا", language="fa").samples) > 1000
    recording = next(Path(tandem.prepare("demo", cache_dir=cache).corpus).rglob("*.flac"), None)
    recording = recording or next(Path(tandem.prepare("demo", cache_dir=cache).corpus).rglob("*.wav"))
    assert len(voice.synthesize("Good morning.", reference=recording).samples) > 1000


@pytest.mark.parametrize(
    "text, settings",
    [
        ("", {}),
        ("***", {}),
        ("Good morning.", {"language": "de"}),
        ("Good morning.", {"language": "klingon"}),
        ("Good morning.", {"speaker": "nobody"}),
        ("Good morning.", {"reference": "no-such-file.wav"}),
        ("Good morning.", {"speed": 0.0}),
        ("Good morning.", {"speed": float("nan")}),
    ],
)
def test_what_a_voice_cannot_do_is_an_error_with_a_hint(run_directory: Path, text: str, settings: Any) -> None:
    voice = tandem.Voice.load(run_directory, backend="cpu")
    with pytest.raises(tandem.TandemError) as error:
        voice.synthesize(text, **settings)
    assert error.value.hint


def test_what_is_no_voice_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(tandem.VoiceError) as error:
            tandem.Voice.load(place)
        assert error.value.hint
    with pytest.raises(tandem.SettingsError):
        tandem.Voice.load(7)  # type: ignore[arg-type]


def test_a_text_is_read_as_by_the_program(program: Callable[..., str]) -> None:
    read = tandem.text("Dr. Smith has 2 dogs.")
    assert read.language == "en" and "doctor smith has two dogs" in read.normalized
    assert len(read.ids) == len(read.symbols)
    printed = json.loads(program("text", "Dr. Smith has 2 dogs.", "--json"))
    shown = printed[0] if isinstance(printed, list) else printed
    assert shown["normalized"] == read.normalized
    assert tandem.text("سلام").language == "fa"
    assert tandem.text("کتاب من").ezafe == ["کتاب"] and read.ezafe == []


@pytest.mark.parametrize("text", ["", "   ", "A ★ star"])
def test_a_text_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(tandem.TextError):
        tandem.text(text)


def test_features_of_samples_and_of_a_file_are_the_same(tmp_path: Path) -> None:
    samples = (0.4 * numpy.sin(numpy.arange(22050) * 0.05)).astype(numpy.float32)
    stored = numpy.round(samples * 32768).astype("<i2")
    file = tmp_path / "tone.wav"
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(22050)
        out.writeframes(stored.tobytes())
    of_file = tandem.features(file)
    of_samples = tandem.features(stored.astype(numpy.float32) / 32768, rate=22050)
    assert of_file.shape == (22050 // 256 + 1, 80)
    assert numpy.abs(of_file - of_samples).max() < 1e-4


@pytest.mark.parametrize(
    "audio, settings",
    [
        ("no-such-file.wav", {}),
        (numpy.zeros((2, 100), dtype=numpy.float32), {"rate": 22050}),
        (numpy.zeros(100, dtype=numpy.int16), {"rate": 22050}),
        (numpy.zeros(22050, dtype=numpy.float32), {}),
        (numpy.zeros(22050, dtype=numpy.float32), {"rate": 8000}),
        (numpy.full(22050, numpy.nan, dtype=numpy.float32), {"rate": 22050}),
    ],
)
def test_audio_that_cannot_be_used_is_an_error(audio: Any, settings: Any) -> None:
    with pytest.raises(tandem.TandemError):
        tandem.features(audio, **settings)


def test_prepare_reports_the_corpus(cache: Path) -> None:
    seen = []
    summary = tandem.prepare("demo", cache_dir=cache, progress=lambda done, all: seen.append((done, all)))
    assert summary.usable == summary.rows == summary.train + summary.eval
    assert summary.rejected == 0 and summary.rejected_rows == []
    assert set(summary.languages) == {"en", "fa"} and summary.sound > 60


def test_an_error_in_the_progress_callback_reaches_the_caller(tmp_path: Path) -> None:
    def fail(done: int, all: int) -> None:
        raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        tandem.prepare("demo", cache_dir=tmp_path, progress=fail)

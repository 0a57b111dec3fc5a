"""Checks exported voices beyond the comparison of `tandem export --check`.

    python xtask/tests/check_export.py NAME.onnx...

The graph must pass the checker of the `onnx` package, with its shapes inferred; lengths must be free; the same text must
give different noise in two calls and the same length; padding and decomposed letters must not change the result; and
Piper's library must play a voice that has a Piper configuration beside it; every symbol that its espeak-ng writes for the
sentences of the demo corpus must have an id, and variants of one symbol must sound alike.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path

import numpy
import onnx
import onnxruntime
import piper

NO_NOISE, NORMAL = 0.0, 1.0


def check_structure(path: Path) -> None:
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    opset = {entry.domain: entry.version for entry in model.opset_import}
    assert opset == {"": 17}, opset
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert metadata["sample_rate"] and metadata["vocoder"], metadata
    outputs = {value.name: value.type.tensor_type.shape.dim for value in model.graph.output}
    assert outputs["output"][-1].dim_param == "samples", "the length must be free"


class Voice:
    def __init__(self, path: Path) -> None:
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.several = "sid" in {value.name for value in self.session.get_inputs()}

    def run(self, ids: list[int], noise: float = NO_NOISE, length: float = NORMAL, speaker: int = 0):
        inputs = {
            "input": numpy.array([ids], dtype=numpy.int64),
            "input_lengths": numpy.array([len(ids)], dtype=numpy.int64),
            "scales": numpy.array([noise, length, 0.0], dtype=numpy.float32),
        }
        if self.several:
            inputs["sid"] = numpy.array([speaker], dtype=numpy.int64)
        output, durations, mel = self.session.run(["output", "durations", "mel"], inputs)
        assert output.shape[:3] == (1, 1, 1) and numpy.isfinite(output).all()
        assert durations.shape == (1, len(ids)) and durations.sum() == mel.shape[1]
        return output.reshape(-1), durations[0], mel[0]


def check_behaviour(path: Path) -> None:
    voice = Voice(path)
    begin, end, a, b = 288, 289, 17, 18
    text = [begin, a, b, b, a, 1, b, a, end]
    plain, durations, mel = voice.run(text)
    assert len(plain) == 256 * mel.shape[0] and (durations >= 1).all()
    for length in (1, 3, 150):
        voice.run([begin] + [a, b] * length + [end])
    again, _, _ = voice.run(text)
    assert (again == plain).all(), "without noise the result is always the same"
    first, second = voice.run(text, noise=0.5)[2], voice.run(text, noise=0.5)[2]
    assert first.shape == second.shape and (first != second).any(), "noise is drawn for each call"
    slow = voice.run(text, length=2.0)[1].sum()
    assert slow > durations.sum() * 1.3, (slow, durations.sum())
    # Padding between the ids, as Piper sends it.
    padded = [id for one in text for id in (one, 0)][:-1]
    found, long_durations, _ = voice.run(padded)
    assert numpy.abs(found - plain).max() < 1e-4
    assert (long_durations[::2] == durations).all() and (long_durations[1::2] == 0).all()
    if voice.several:
        other, _, _ = voice.run(text, speaker=1)
        assert len(other) != len(plain) or (other != plain).any(), "speakers differ"


def check_letters(session: Voice, voice: "piper.PiperVoice", letters: dict[str, list[int]]) -> None:
    # A letter that Unicode decomposes must become the symbol of the whole letter again.
    for text in ("آب", "ü"):
        decomposed = voice.phonemes_to_ids(voice.phonemize(text)[0])
        whole = letters["^"] + [id for letter in text for id in letters[letter]] + letters["$"]
        assert decomposed != whole
        left, right = session.run(decomposed)[0], session.run(whole)[0]
        assert left.shape == right.shape and numpy.abs(left - right).max() < 1e-4, text
    small, capital = (voice.phonemes_to_ids(voice.phonemize(text)[0]) for text in ("good", "GOOD"))
    assert small == capital


def check_espeak(path: Path, voice: "piper.PiperVoice", ids: dict[str, list[int]]) -> None:
    """What Piper itself sends, and that the graph reads it as the symbols of the voice."""
    sentences = Path(__file__).resolve().parents[1] / "generators" / "demo_corpus" / f"{voice.config.espeak_voice.split('-')[0]}.txt"
    texts = [line.split("|")[0] for line in sentences.read_text(encoding="utf-8").splitlines()]
    sent = {symbol for text in texts for phonemes in voice.phonemize(text) for symbol in phonemes}
    missing = sorted(sent - set(ids))
    assert len(sent) > 20 and not missing, f"espeak-ng writes {missing}"
    session = Voice(path)
    pairs = {"en-us": [("wˈɜːɾɚɹ ʌvðə", "wˈɝtɚ əv ðə"), ("bˈʌʔn̩", "bˈʌtən")], "fa": [("dˈoːrɑn", "dowrɑn")]}
    for espeak, own in pairs[voice.config.espeak_voice]:
        found = []
        for text in (espeak, own):
            decomposed = unicodedata.normalize("NFD", text)
            found.append(session.run([*ids["^"], *(id for c in decomposed for id in ids[c]), *ids["$"]])[0])
        assert found[0].shape == found[1].shape and numpy.abs(found[0] - found[1]).max() < 1e-4, espeak


def check_piper(path: Path) -> None:
    config = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
    voice = piper.PiperVoice.load(path)
    if config["phoneme_type"] == "text":
        check_letters(Voice(path), voice, config["phoneme_id_map"])
    else:
        check_espeak(path, voice, config["phoneme_id_map"])
    chunks = list(voice.synthesize("Good morning.", include_alignments=True))
    assert len(chunks) == 1 and chunks[0].sample_rate == config["audio"]["sample_rate"]
    alignments = chunks[0].phoneme_alignments
    assert alignments and sum(one.num_samples for one in alignments) == len(chunks[0].audio_float_array)


for name in sys.argv[1:]:
    path = Path(name)
    check_structure(path)
    check_behaviour(path)
    if Path(f"{path}.json").exists():
        check_piper(path)
    print(f"{path.name}: passed")

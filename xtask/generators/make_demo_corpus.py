#!/usr/bin/env python3
"""Generates the demo corpus: crates/tandem/demo-corpus.

In: the sentences in xtask/generators/demo_corpus/{en,fa}.txt (`raw` or `raw|as spoken`), and espeak-ng.
Out: wavs/, three manifests, phonemes.tsv and words.tsv, all rewritten.
The same versions of espeak-ng and flac give the same bytes; nothing depends on the clock,
on the order of work or on random numbers. Needs Debian's `espeak-ng` and `flac`, no Python package.

    python3 xtask/generators/make_demo_corpus.py [--out DIR]

Audio and timings come from one pass over libespeak-ng: its callback hands over the samples
and, with them, an event for every word and phoneme that carries the sample it begins at
(struct and constants: espeak-ng's speak_lib.h).
"""

import argparse
import array
import ctypes
import multiprocessing
import pathlib
import shutil
import subprocess
import sys
import tempfile
import wave
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
DEFAULT_OUT = HERE.parents[1] / "crates" / "tandem" / "demo-corpus"

RATE = 22050
PEAK = round(32767 * 10 ** (-3 / 20))  # -3 dBFS
LEAD, TAIL = round(0.07 * RATE), round(0.09 * RATE)  # silence kept around the speech
SHORTEST, LONGEST = 1.5, 6.0  # seconds
EVAL_EVERY, EVAL_AT = 9, 4  # sentence i is held out where i % 9 == 4
PAUSE = "_"

# espeak-ng 1.51 sends this after every Persian q: a mnemonic its tables name no IPA sign for.
NO_SOUND = "1"
# Closure is silent: the silence before one of these is its own, not its neighbour's.
STOPS = set("pbtdkɡɢq") | {"tʃ", "dʒ", "ʔ", "ɾ"}


@dataclass(frozen=True)
class Speaker:
    name: str
    language: str
    voice: str  # as espeak-ng's voice files name it
    pitch: int  # 0 to 100
    speed: int  # words per minute


SPEAKERS = [
    Speaker("emma", "en", "en-US+f2", 50, 160),
    Speaker("jack", "en", "en-US+adam", 75, 165),
    Speaker("henry", "en", "en-US+klatt2", 30, 160),
    Speaker("mina", "fa", "fa+anika", 45, 110),
    Speaker("arash", "fa", "fa+klatt2", 75, 165),
    Speaker("darius", "fa", "fa+Denis", 40, 165),
]


@dataclass(frozen=True)
class Sentence:
    id: str
    raw: str
    spoken: str
    speaker: Speaker
    held_out: bool


@dataclass(frozen=True)
class Mark:
    """An event of espeak-ng: where something begins, in samples."""

    kind: int
    sample: int
    name: str
    text_at: int
    text_len: int


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=DEFAULT_OUT)
    out = parser.parse_args().out
    if not shutil.which("flac"):
        sys.exit("error: `flac` is missing\nhint: apt install flac espeak-ng")
    sentences = [s for language in ("en", "fa") for s in read_sentences(language)]
    check_held_out(sentences)
    (out / "wavs").mkdir(parents=True, exist_ok=True)
    # A fresh process per clip: espeak-ng keeps state between calls, so that one changed
    # sentence would otherwise change every clip after it.
    jobs = [(sentence, str(out)) for sentence in sentences]
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        clips = pool.starmap(make_clip, jobs, chunksize=1)
    wanted = {out / "wavs" / s.speaker.language / f"{s.id}.flac" for s in sentences}
    for stale in set(out.glob("wavs/*/*.flac")) - wanted:
        stale.unlink()
    write_manifests(out, sentences)
    write_timings(out, sentences, clips)
    total = sum(length for length, _, _ in clips) / RATE
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    print(f"{len(clips)} clips, {total:.0f} s of speech, {size / 1e6:.1f} MB in {out}")


def read_sentences(language):
    speakers = [s for s in SPEAKERS if s.language == language]
    lines = (HERE / "demo_corpus" / f"{language}.txt").read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        raw, _, spoken = line.partition("|")
        # Held-out sentences take turns too: 9 and the three speakers share a factor.
        turn = number + number // EVAL_EVERY
        speaker = speakers[turn % len(speakers)]
        clip = f"{language}_{speaker.name}_{number + 1:03}"
        held_out = number % EVAL_EVERY == EVAL_AT
        yield Sentence(clip, raw, spoken or raw, speaker, held_out)


def check_held_out(sentences):
    held_out = {s.spoken for s in sentences if s.held_out}
    assert not held_out & {s.spoken for s in sentences if not s.held_out}, "a sentence leaks"
    assert {s.speaker for s in sentences if s.held_out} == set(SPEAKERS), "a speaker is missing"
    assert len({s.spoken for s in sentences}) == len(sentences), "a sentence is there twice"


# Audio


def make_clip(sentence, out):
    """Writes one clip; gives its length in samples, its phonemes and its words."""
    samples, marks = speak(sentence)
    peak = max(map(abs, samples))
    assert 0 < peak < 32767, f"{sentence.id}: silent or clipped by espeak-ng"
    phonemes = phoneme_spans(samples, marks, peak)
    words = word_spans(sentence, phonemes, marks)
    loud = [i for i, value in enumerate(samples) if abs(value) > peak // 100]
    spoken = [span for span in phonemes if span[2] != PAUSE]
    first = min(loud[0], spoken[0][0])
    last = max(loud[-1] + 1, spoken[-1][1])
    clip = array.array("h", bytes(2 * LEAD))
    clip.extend(round(value * PEAK / peak) for value in samples[first:last])
    clip.extend(array.array("h", bytes(2 * TAIL)))
    assert SHORTEST <= len(clip) / RATE <= LONGEST, f"{sentence.id}: {len(clip) / RATE:.2f} s"
    folder = pathlib.Path(out) / "wavs" / sentence.speaker.language
    write_flac(folder / f"{sentence.id}.flac", clip)
    shift = LEAD - first
    phonemes = [(a + shift, b + shift, name) for a, b, name, _ in phonemes]
    words = [(a + shift, b + shift, name) for a, b, name in words]
    return len(clip), with_silence_around(phonemes, len(clip), sentence), words


def speak(sentence):
    """One pass of espeak-ng: samples and marks."""

    class Event(ctypes.Structure):
        _fields_ = [
            ("kind", ctypes.c_int),
            ("message", ctypes.c_uint),
            ("text_at", ctypes.c_int),
            ("text_len", ctypes.c_int),
            ("milliseconds", ctypes.c_int),
            ("sample", ctypes.c_int),
            ("user_data", ctypes.c_void_p),
            ("name", ctypes.c_char * 8),
        ]

    callback_type = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event)
    )
    synchronous, phonemes_as_ipa, utf8, by_character = 2, 1 | 2, 1, 1
    speed, volume, pitch = 1, 2, 3
    library = ctypes.CDLL("libespeak-ng.so.1")
    ctypes.CDLL(None).srand(1)  # its breath noise comes from rand()
    rate = library.espeak_Initialize(synchronous, 0, None, phonemes_as_ipa)
    assert rate == RATE, f"espeak-ng speaks at {rate} Hz"
    samples, marks = array.array("h"), []

    @callback_type
    def collect(wav, count, events):
        if wav and count > 0:
            samples.frombytes(ctypes.string_at(wav, 2 * count))
        for i in range(10_000):
            event = events[i]
            if event.kind == 0:
                break
            name = event.name.decode("utf-8") if event.kind == PHONEME else ""
            if event.kind == WORD and event.text_len == 0:
                continue  # sent at some pauses; it stands for no word
            marks.append(Mark(event.kind, event.sample, name, event.text_at, event.text_len))
        return 0

    speaker = sentence.speaker
    library.espeak_SetSynthCallback(collect)
    assert library.espeak_SetVoiceByName(speaker.voice.encode()) == 0, f"no {speaker.voice}"
    library.espeak_SetParameter(speed, speaker.speed, 0)
    library.espeak_SetParameter(pitch, speaker.pitch, 0)
    library.espeak_SetParameter(volume, 60, 0)  # room for the loud voices: no clipping inside
    text = sentence.spoken.encode("utf-8") + b"\0"
    assert library.espeak_Synth(text, len(text), 0, by_character, 0, utf8, None, None) == 0
    return samples, marks


WORD, PHONEME = 1, 7  # espeakEVENT_WORD, espeakEVENT_PHONEME


def write_flac(path, samples):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(suffix=".wav") as draft:
        with wave.open(draft, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(RATE)
            out.writeframes(samples.tobytes())
        draft.flush()
        options = ["-8", "-e", "-p", "--no-padding", "--no-seektable", "--silent", "--force"]
        subprocess.run(["flac", *options, "-o", str(path), draft.name], check=True)


# Timings


def phoneme_spans(samples, marks, peak):
    """Spans without gaps, pauses included: (first sample, one past the last, name, word)."""
    begun = []
    word, word_at = -1, None
    for mark in marks:
        if mark.kind == WORD:
            word, word_at = word + 1, mark.sample
        elif mark.kind == PHONEME and mark.name != NO_SOUND:
            name = mark.name or PAUSE
            start = mark.sample
            # The first phoneme of a word owns what espeak-ng puts before it (closure, glide);
            # not after a final nasal, which it speaks only once the next word is marked.
            if word_at is not None and not (begun and word_at <= begun[-1][0]):
                start = word_at
            word_at = None
            if name in STOPS and begun and begun[-1][1] != PAUSE:
                start = min(start, closure_start(samples, begun[-1][0], mark.sample, peak))
            if not (name == PAUSE and begun and begun[-1][1] == PAUSE):
                begun.append((start, name, word))
    ends = [start for start, _, _ in begun[1:]] + [len(samples)]
    return join_unparted((*first, end) for first, end in zip(begun, ends))


def join_unparted(spans):
    """Where espeak-ng speaks a sound as the end of the vowel before (the l of "ball"), it
    knows no boundary: one label for both, rather than an invented one."""
    joined = []
    for start, name, word, end in spans:
        if start == end and name == PAUSE:
            continue
        if start == end:
            start, _, before, _ = joined.pop()
            name = before + name
        joined.append((start, end, name, word))
    return joined


def closure_start(samples, after, before, peak):
    """Where the silence that ends at `before` begins; `before` itself if there is none."""
    at = before
    while at > after + RATE // 50 and abs(samples[at - 1]) <= peak // 200:
        at -= 1
    return at if before - at >= RATE // 200 else before


def word_spans(sentence, phonemes, marks):
    """(first sample, one past the last, word as written).

    Words that espeak-ng speaks as one ("on the") stay one.
    """
    begun = [mark for mark in marks if mark.kind == WORD]
    limits = [mark.text_at for mark in begun[1:]] + [len(sentence.spoken) + 1]
    words = []
    for number, (mark, limit) in enumerate(zip(begun, limits)):
        mine = [p for p in phonemes if p[3] == number and p[2] != PAUSE]
        text = sentence.spoken[mark.text_at - 1 : limit - 1].strip(" .,!?،؟")
        assert mine and text, f"{sentence.id}: `{text}` has no sound"
        words.append((mine[0][0], mine[-1][1], text))
    return words


def with_silence_around(phonemes, length, sentence):
    """The spans stretched over the whole clip, and checked."""
    spans = [list(span) for span in phonemes if span[2] != PAUSE or 0 < span[0]]
    while spans[-1][2] == PAUSE:
        spans.pop()
    spans[-1][1] = length - TAIL
    spans.insert(0, [0, spans[0][0], PAUSE])
    spans.append([length - TAIL, length, PAUSE])
    for (start, end, name), after in zip(spans, spans[1:] + [[length]]):
        assert start < end == after[0], f"{sentence.id}: `{name}` from {start} to {end}"
    return spans


# Tables


def write_manifests(out, sentences):
    kept = [s for s in sentences if not s.held_out]
    held_out = [s for s in sentences if s.held_out]
    for name, rows in (("", sentences), ("_train", kept), ("_eval", held_out)):
        lines = ["id|text|normalised|speaker|language"]
        for s in rows:
            speaker = s.speaker
            clip = f"{speaker.language}/{s.id}"
            lines.append("|".join([clip, s.raw, s.spoken, speaker.name, speaker.language]))
        (out / f"metadata{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")


def write_timings(out, sentences, clips):
    for file, column, label in (("phonemes.tsv", 1, "phoneme"), ("words.tsv", 2, "word")):
        lines = [f"id\tstart_s\tend_s\t{label}"]
        for sentence, clip in zip(sentences, clips):
            for start, end, name in clip[column]:
                row = f"{start / RATE:.5f}\t{end / RATE:.5f}\t{name}"
                lines.append(f"{sentence.speaker.language}/{sentence.id}\t{row}")
        (out / file).write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()

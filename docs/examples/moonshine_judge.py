#!/usr/bin/env python3
"""A judge for `tandem train --judge`: Moonshine tiny, for English.

In: paths of sound files. Out: one line for each, what the recogniser hears in it; empty where it hears nothing.
The model is inside the package (version 0.1.0; later ones download it). It needs about 0.06 seconds per second of sound
on two cores. Other languages need another recogniser: the form of the output is all that counts.

    python3 -m venv judge && judge/bin/pip install moonshine-voice==0.1.0 soundfile numpy
    tandem train --train-data my_voice --judge "judge/bin/python docs/examples/moonshine_judge.py"
"""

import os
import sys

import moonshine_voice
import numpy
import soundfile
from moonshine_voice import Transcriber
from moonshine_voice.moonshine_api import ModelArch

QUIET = 0.25  # seconds before and after: the recogniser misses words at the very edge
PEAK = 0.6
NOISE = 32 / 32768  # a recogniser that learned from microphones does not know digital silence


def transcriber():
    model = os.path.join(os.path.dirname(moonshine_voice.__file__), "assets/tiny-en")
    return Transcriber(model_path=model, model_arch=ModelArch.TINY)


def hear(recogniser, path):
    sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
    sound = sound.mean(axis=1)
    quiet = numpy.zeros(int(QUIET * rate), numpy.float32)
    sound = numpy.concatenate([quiet, PEAK * sound / max(1e-6, numpy.abs(sound).max(initial=0)), quiet])
    # Always the same noise, so that the same sound gives the same text.
    sound += numpy.random.default_rng(0).triangular(-NOISE, 0, NOISE, len(sound)).astype(numpy.float32)
    lines = recogniser.transcribe_without_streaming(sound.tolist(), rate).lines
    return " ".join(" ".join(line.text for line in lines).split())


def main():
    recogniser = transcriber()
    for path in sys.argv[1:]:
        print(hear(recogniser, path), flush=True)


if __name__ == "__main__":
    main()

"""Speaks a text with a trained voice, as a WAV file.

    python speak.py run "Good morning." hello.wav
    python speak.py run "Good morning." hello.wav --reference me.wav
"""

from __future__ import annotations

import argparse
import wave

import numpy
import tandem

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("run")
parser.add_argument("text")
parser.add_argument("output")
parser.add_argument("--reference")
args = parser.parse_args()

voice = tandem.Voice.load(args.run)
samples, rate = voice.synthesize(args.text, reference=args.reference)
with wave.open(args.output, "wb") as file:
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(rate)
    file.writeframes((numpy.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
print(f"{args.output}: {len(samples) / rate:.2f} s")

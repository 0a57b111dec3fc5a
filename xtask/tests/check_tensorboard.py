#!/usr/bin/env python3
"""Reads a run's log with TensorBoard's own reader and reports differences from what was written.

    cargo run --release -p tandem-train --example write_run_log /tmp/run
    pip install tensorboard numpy
    python3 xtask/tests/check_tensorboard.py /tmp/run

Last run with TensorBoard 2.21.0 and Python 3.11.7, November 2026; the pages of its default server showed
the same (with `--load_fast=false`, steps that were trained twice appear twice). Not part of the test
suite, which needs no Python: the Rust tests check framing, checksums and contents with their own
reader. Exits with 1 if something differs.
"""
import io
import struct
import sys
import wave

from tensorboard import version
from tensorboard.backend.event_processing import event_accumulator as reader
from tensorboard.plugins.audio import plugin_data_pb2 as audio


def main(directory):
    everything = {kind: 0 for kind in (reader.SCALARS, reader.IMAGES, reader.TENSORS)}
    log = reader.EventAccumulator(directory, size_guidance=everything)
    log.Reload()
    tags = log.Tags()
    expect("scalars", tags["scalars"], ["loss/total"])
    expect("images", sorted(tags["images"]), ["alignment/en", "mel/en"])
    expect("tensors", sorted(tags["tensors"]), ["audio/en", "text/en"])

    # Steps 61 to 100 of the first run are replaced by those of the resumed run.
    points = [(event.step, event.value) for event in log.Scalars("loss/total")]
    single = lambda value: struct.unpack("f", struct.pack("f", value))[0]
    wanted = [(step, single(1.0 / step)) for step in range(1, 61)]
    wanted += [(step, single(2.0) / single(step)) for step in range(61, 121)]
    expect("steps", [step for step, _ in points], [step for step, _ in wanted])
    worst = max(abs(a - b) for (_, a), (_, b) in zip(points, wanted))
    expect("worst difference of a loss is below 1e-7", worst < 1e-7, True)

    for tag in ("mel/en", "alignment/en"):
        image = log.Images(tag)[-1]
        png = image.encoded_image_string
        expect(f"{tag} is a PNG", png[:8], b"\x89PNG\r\n\x1a\n")
        expect(f"{tag} has its size", struct.unpack(">II", png[16:24]), (image.width, image.height))
        expect(f"{tag} has its step", image.step, 120)

    sound = log.Tensors("audio/en")[-1].tensor_proto
    expect("sound's shape", [dim.size for dim in sound.tensor_shape.dim], [1, 2])
    with wave.open(io.BytesIO(sound.string_val[0])) as wav:
        facts = (wav.getframerate(), wav.getnchannels(), wav.getsampwidth(), wav.getnframes())
    expect("sound", facts, (22050, 1, 2, 22050))
    plugin = log.SummaryMetadata("audio/en").plugin_data
    kind = audio.AudioPluginData.FromString(plugin.content).encoding
    expect("sound's kind", (plugin.plugin_name, kind), ("audio", audio.AudioPluginData.WAV))

    text = log.Tensors("text/en")[-1].tensor_proto.string_val[0].decode()
    expect("text", text, "**Hello** سلام")
    plugin = log.SummaryMetadata("text/en").plugin_data.plugin_name
    expect("text's plugin", plugin, "text")
    print(f"TensorBoard {version.VERSION}, Python {sys.version.split()[0]}: all as written")


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: found {found!r}, wanted {wanted!r}")


if __name__ == "__main__":
    main(sys.argv[1])

"""Runs an exported graph with ONNX Runtime.

In: a directory with request.json and noise.f32. Out: output.f32 and mel.f32 in the same directory, and a line of JSON
with the version of ONNX Runtime and the seconds of the second run (the first one also prepares the graph).
"""

import json
import pathlib
import sys
import time

import numpy
import onnxruntime

room = pathlib.Path(sys.argv[1])
request = json.loads((room / "request.json").read_text())
# It warns about the optional input.
onnxruntime.set_default_logger_severity(3)
session = onnxruntime.InferenceSession(request["model"], providers=["CPUExecutionProvider"])
noise = numpy.fromfile(room / "noise.f32", dtype="<f4").reshape(-1, request["bands"])
inputs = {
    "input": numpy.array([request["ids"]], dtype=numpy.int64),
    "input_lengths": numpy.array([len(request["ids"])], dtype=numpy.int64),
    "scales": numpy.array(request["scales"], dtype=numpy.float32),
}
if "noise" in {value.name for value in session.get_overridable_initializers()}:
    inputs["noise"] = noise
if request["sid"] is not None:
    inputs["sid"] = numpy.array([request["sid"]], dtype=numpy.int64)
session.run(None, inputs)
began = time.perf_counter()
output, durations, mel = session.run(["output", "durations", "mel"], inputs)
seconds = time.perf_counter() - began
output.astype("<f4").tofile(room / "output.f32")
mel.astype("<f4").tofile(room / "mel.f32")
print(json.dumps({"runtime": onnxruntime.__version__, "seconds": seconds}))

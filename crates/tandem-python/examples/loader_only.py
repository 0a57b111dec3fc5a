"""Reads one epoch without any framework: NumPy arrays, the state in the middle, and the report.

    python loader_only.py my-corpus           default: the built-in corpus
"""

from __future__ import annotations

import sys
import time

began = time.perf_counter()
import tandem  # noqa: E402

loader = tandem.Loader(sys.argv[1] if len(sys.argv) > 1 else "demo", batch_size=16, cache_dataset=True)
batches = iter(loader)
first = next(batches)
print(f"first batch {time.perf_counter() - began:.3f} s after the start: {first}")
state = loader.state_dict()
rest = sum(len(batch.ids) for batch in batches)
print(f"{len(first.ids) + rest} utterances in {len(loader)} batches")

resumed = tandem.Loader(sys.argv[1] if len(sys.argv) > 1 else "demo", batch_size=16, cache_dataset=True)
resumed.load_state_dict(state)
assert sum(len(batch.ids) for batch in resumed) == rest
print("resumed after the first batch: the same utterances remained")
print(loader.report())

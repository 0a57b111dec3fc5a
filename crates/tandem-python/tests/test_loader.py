"""Batches: shapes, order, memory, iterations, report."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any, Callable, List, Tuple

import numpy
import pytest
import tandem


def ids_of(loader: tandem.Loader) -> List[List[str]]:
    return [batch.ids for batch in loader]


def test_an_epoch_has_every_utterance_once(make_loader: Any) -> None:
    loader = make_loader()
    batches = ids_of(loader)
    assert len(batches) == len(loader) > 1
    names = [name for batch in batches for name in batch]
    assert len(names) == len(set(names)) == loader.utterances


def test_arrays_have_the_documented_types_and_lengths(make_loader: Any) -> None:
    loader = make_loader()
    for batch in loader:
        rows = len(batch.ids)
        assert batch.mel.shape[0] == batch.text_ids.shape[0] == rows
        assert batch.mel.dtype == numpy.float32 and batch.text_ids.dtype == numpy.int32
        assert batch.mel.shape[1] == batch.mel_lengths.max()
        assert batch.text_ids.shape[1] >= batch.text_lengths.max()
        assert (batch.text_lengths > 0).all() and numpy.isfinite(batch.mel).all()
        for row, length in enumerate(batch.text_lengths):
            assert (batch.text_ids[row, :length] > 0).all() and (batch.text_ids[row, length:] == 0).all()
        assert all(0 <= index < len(loader.speakers) for index in batch.speaker)
        assert {loader.languages[index] for index in batch.language} <= {"en", "fa"}
        assert list(batch) == [*tandem.loader._FIELDS, "ids"] and batch["mel"] is batch.mel


def test_a_batch_is_not_copied_and_outlives_its_loader(make_loader: Any) -> None:
    loader = make_loader()
    batch = next(iter(loader))
    assert not batch.mel.flags.owndata
    assert batch.mel.flags.writeable and batch.mel.flags.c_contiguous
    # A second array of the same memory has the same address.
    again = numpy.asarray(batch.mel.base)
    assert again.ctypes.data == batch.mel.ctypes.data
    kept = batch.mel.copy()
    for _ in loader:
        pass
    loader.close()
    del loader
    gc.collect()
    assert (batch.mel == kept).all()


def test_frames_are_those_of_tandem_features(make_loader: Any, cache: Path) -> None:
    loader = make_loader(batch_size=1)
    batch = next(iter(loader))
    found = list(Path(tandem.prepare("demo", cache_dir=cache).corpus).rglob(f"{batch.ids[0]}.*"))
    recordings = [path for path in found if path.suffix in {".wav", ".flac", ".ogg", ".mp3"}]
    assert len(recordings) == 1
    alone = tandem.features(recordings[0])
    assert alone.shape[0] == batch.mel_lengths[0]
    assert numpy.abs(alone - batch.mel[0, : alone.shape[0]]).max() < 1e-5


def test_the_order_depends_on_seed_and_epoch_only(make_loader: Any) -> None:
    first = make_loader(num_workers=1)
    epochs = [ids_of(first), ids_of(first)]
    assert epochs[0] != epochs[1]
    assert ids_of(make_loader(num_workers=8)) == epochs[0]
    assert ids_of(make_loader(seed=1)) != epochs[0]
    later = make_loader()
    later.set_epoch(1)
    assert ids_of(later) == epochs[1]
    assert later.epoch == 2


def test_without_the_cached_features_batches_are_the_same(make_loader: Any) -> None:
    cached = make_loader()
    computed = make_loader(cache_dataset=False)
    for left, right in zip(cached, computed):
        assert left.ids == right.ids
        assert numpy.abs(left.mel - right.mel).max() < 1e-5


def test_a_second_iteration_ends_the_first(make_loader: Any) -> None:
    loader = make_loader()
    first = iter(loader)
    next(first)
    second = iter(loader)
    with pytest.raises(tandem.LoaderError, match="iterated again") as error:
        next(first)
    assert "one iterator at a time" in error.value.hint
    assert len(list(second)) == len(loader)
    with pytest.raises(StopIteration):
        next(second)


def test_an_abandoned_epoch_begins_again(make_loader: Any) -> None:
    loader = make_loader()
    whole = ids_of(loader)
    loader.set_epoch(0)
    for number, _ in enumerate(loader):
        if number == 1:
            break
    assert ids_of(loader) == whole


def test_an_abandoned_loader_ends_its_threads(make_loader: Any) -> None:
    threads = Path("/proc/self/task")
    before = len(list(threads.iterdir()))
    for _ in range(5):
        next(iter(make_loader()))
    make_loader.__closure__[1].cell_contents.clear()
    gc.collect()
    # Some threads belong to a pool that stays.
    import time

    until = time.monotonic() + 10
    while len(list(threads.iterdir())) > before + 4 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(list(threads.iterdir())) <= before + 4


def test_a_closed_loader_refuses_batches_and_keeps_its_report(make_loader: Any) -> None:
    with make_loader() as loader:
        batches = iter(loader)
        next(batches)
    assert loader.closed
    with pytest.raises(tandem.LoaderError, match="closed"):
        next(batches)
    assert "batch" in str(loader.report()).lower() or loader.report().data
    loader.close()


def test_splits_have_different_utterances(make_loader: Any) -> None:
    names = {split: {name for batch in make_loader(split=split) for name in batch.ids} for split in ("train", "eval", "all")}
    assert names["train"] and names["eval"]
    assert not names["train"] & names["eval"]
    assert names["train"] | names["eval"] == names["all"]


def test_the_report_counts_the_time_of_the_own_loop(make_loader: Any, program: Callable[..., str], tmp_path: Path) -> None:
    import time

    loader = make_loader()
    for _ in loader:
        time.sleep(0.02)
    report = loader.report()
    assert report.steps is not None and report.verdict
    assert str(report)
    record = tmp_path / "run.jsonl"
    loader.save_record(record)
    printed = json.loads(program("report", record, "--json"))
    assert set(printed) == set(report.data)
    assert printed["verdict"].keys() == report.verdict.keys()
    assert "verdict" in program("report", record).lower() or program("report", record)


def test_a_record_can_be_written_while_batches_are_read(make_loader: Any, tmp_path: Path, program: Callable[..., str]) -> None:
    record = tmp_path / "live.jsonl"
    loader = make_loader(record=record)
    next(iter(loader))
    assert record.exists()
    loader.close()
    assert program("report", record)


def test_a_record_that_cannot_be_written_is_an_error_with_a_hint(make_loader: Any, tmp_path: Path) -> None:
    loader = make_loader()
    for path in (tmp_path / "none" / "run.jsonl", 7):
        with pytest.raises(tandem.TandemError) as error:
            loader.save_record(path)
        assert error.value.hint


def test_torch_tensors_share_the_memory(make_loader: Any) -> None:
    torch = pytest.importorskip("torch")
    batch = next(iter(make_loader()))
    tensors = batch.torch()
    assert tensors["mel"].data_ptr() == batch.mel.ctypes.data
    assert tensors["text_ids"].dtype == torch.int32


def shape_of(batch: tandem.Batch) -> Tuple[int, ...]:
    return batch.mel.shape


def test_static_shapes_give_few_shapes(make_loader: Any) -> None:
    free = {shape_of(batch)[1:] for batch in make_loader()}
    fixed = {shape_of(batch)[1:] for batch in make_loader(enable_static_shapes=True)}
    assert len(fixed) <= 8 and len(fixed) < len(free)

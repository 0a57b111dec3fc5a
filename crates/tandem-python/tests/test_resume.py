"""`state_dict` and `load_state_dict`: the batches that remain, to the last bit."""

from __future__ import annotations

import json
from typing import Any, List, Tuple

import numpy
import pytest
import tandem

Seen = Tuple[int, int, List[str], Any, Any]


def seen(batch: tandem.Batch) -> Seen:
    return batch.epoch, batch.index, batch.ids, batch.mel.copy(), batch.text_ids.copy()


def same(left: Seen, right: Seen) -> bool:
    arrays = all(numpy.array_equal(a, b) for a, b in zip(left[3:], right[3:]))
    return left[:3] == right[:3] and arrays


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("stop", [0, 1, 5])
def test_the_rest_of_an_epoch_is_the_same(make_loader: Any, workers: int, stop: int, cached: bool) -> None:
    loader = make_loader(num_workers=workers, cache_dataset=cached)
    loader.set_epoch(3)
    batches = iter(loader)
    for _ in range(stop):
        next(batches)
    # A state fits into any checkpoint.
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [seen(batch) for batch in batches]
    following = seen(next(iter(loader)))

    resumed = make_loader(num_workers=9 - workers, cache_dataset=cached)
    resumed.load_state_dict(state)
    found = [seen(batch) for batch in resumed]
    assert len(found) == len(rest) == len(loader) - stop
    assert all(same(left, right) for left, right in zip(found, rest))
    # The next epoch is a whole one.
    assert same(seen(next(iter(resumed))), following)


def test_set_epoch_of_the_same_epoch_keeps_the_position(make_loader: Any) -> None:
    loader = make_loader()
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    resumed = make_loader()
    resumed.load_state_dict(state)
    resumed.set_epoch(0)
    assert next(iter(resumed)).index == 1
    resumed.set_epoch(4)
    batch = next(iter(resumed))
    assert (batch.epoch, batch.index) == (4, 0)


@pytest.mark.parametrize("settings", [{"seed": 7}, {"batch_size": 4}, {"split": "all"}])
def test_a_state_of_other_settings_is_refused(make_loader: Any, settings: Any) -> None:
    state = make_loader().state_dict()
    with pytest.raises(tandem.TandemError) as error:
        make_loader(**settings).load_state_dict(state)
    assert error.value.hint


@pytest.mark.parametrize("state", [None, 7, "text", [], {}, {"epoch": 1}, {"version": 99}])
def test_what_is_no_state_is_refused(make_loader: Any, state: Any) -> None:
    loader = make_loader()
    with pytest.raises(tandem.TandemError) as error:
        loader.load_state_dict(state)
    assert error.value.hint
    # It stays usable.
    assert next(iter(loader)).index == 0

"""What the tests share: a corpus, a program, a trained voice.

TANDEM names the program `tandem`; tests that need it are skipped without it. `xtask/tests/python_tests.sh` sets it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Callable, List

import pytest
import tandem

#: Short, so that a test takes seconds; the order of batches depends on none of these.
BATCH = 8


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of the built-in corpus that all tests share."""
    place = tmp_path_factory.mktemp("cache")
    tandem.prepare("demo", cache_dir=place, cache_dataset=True)
    return place


@pytest.fixture
def make_loader(cache: Path) -> Any:
    """Creates loaders of the built-in corpus, and closes them after the test."""
    made: List[tandem.Loader] = []

    def make(**settings: Any) -> tandem.Loader:
        loader = tandem.Loader(
            "demo", **{"cache_dir": cache, "cache_dataset": True, "batch_size": BATCH, "num_workers": 2, **settings}
        )
        made.append(loader)
        return loader

    yield make
    for loader in made:
        loader.close()


@pytest.fixture(scope="session")
def program() -> Callable[..., str]:
    """Runs the program `tandem` and returns what it prints."""
    path = os.environ.get("TANDEM")
    if not path:
        pytest.skip("TANDEM does not name the program")

    def run(*arguments: Any) -> str:
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def run_directory(program: Callable[..., str], cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice that was trained for two steps: too short for speech, complete in every other way."""
    place = tmp_path_factory.mktemp("run") / "run"
    program(
        "train", "--train-data", "demo", "--cache-dir", cache, "--cache-dataset", "--model-size", "micro",
        "--max-steps", 2, "--batch-size", BATCH, "--checkpoint-dir", place, "--backend", "cpu",
    )  # fmt: skip
    return place

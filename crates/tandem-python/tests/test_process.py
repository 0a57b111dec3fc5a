"""Signals, forks, panics and a damaged installation: the interpreter survives, and the message helps."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
import tandem
from tandem import _native


def run_python(script: str, *arguments: Any, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def interrupt_after(seconds: float) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts background jobs with Ctrl-C ignored, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_wait() -> None:
    interrupt_after(0.3)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _native.wait_for_tests(60.0)
    assert time.monotonic() - began < 30


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_an_iteration_and_the_loader_stays_usable(make_loader: Any) -> None:
    loader = make_loader()
    interrupt_after(0.3)
    ends = time.monotonic() + 60
    with pytest.raises(KeyboardInterrupt):
        while time.monotonic() < ends:
            for _ in loader:
                pass
    loader.set_epoch(0)
    assert len(list(loader)) == len(loader)


def test_other_threads_run_while_a_call_waits() -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.01)

    thread = threading.Thread(target=count)
    thread.start()
    _native.wait_for_tests(1.0)
    done.set()
    thread.join()
    assert counted >= 5


def test_a_panic_is_an_exception() -> None:
    with pytest.raises(tandem.InternalError, match="on purpose"):
        _native.panic_for_tests()
    with pytest.raises(tandem.InternalError, match="on purpose"):
        _native.panic_here_for_tests()


def test_a_forked_process_gets_an_error_and_does_not_hang(cache: Path) -> None:
    script = """
        import os, sys
        import tandem

        loader = tandem.Loader("demo", cache_dir=sys.argv[1], batch_size=8, num_workers=2)
        next(iter(loader))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                next(iter(loader))
            except tandem.ForkError as error:
                code = 0 if "after the fork" in error.hint else 2
            del loader
            # A loader of its own works.
            own = tandem.Loader("demo", cache_dir=sys.argv[1], batch_size=8, num_workers=2)
            code += 0 if next(iter(own)).index == 0 else 4
            own.close()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        # The parent continues as if nothing had happened.
        assert sum(1 for _ in loader) == len(loader)
        sys.exit(os.waitstatus_to_exitcode(status))
    """
    done = run_python(script, cache)
    assert done.returncode == 0, done.stderr


def test_a_loader_cannot_be_pickled(make_loader: Any) -> None:
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(make_loader())


def test_the_interpreter_ends_with_an_open_loader(cache: Path) -> None:
    script = """
        import sys, tandem
        loader = tandem.Loader("demo", cache_dir=sys.argv[1], batch_size=8)
        batches = iter(loader)
        next(batches)
    """
    assert run_python(script, cache).returncode == 0


def test_an_installation_without_its_native_part_says_so(tmp_path: Path) -> None:
    package = Path(tandem.__file__).parent
    copy = tmp_path / "tandem"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("_native*", "__pycache__"))
    done = run_python("import tandem", cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert "the native part of the package `tandem` cannot be loaded" in done.stderr
    assert "hint: install the package again" in done.stderr


def test_an_installation_without_a_python_file_is_an_import_error(tmp_path: Path) -> None:
    package = Path(tandem.__file__).parent
    copy = tmp_path / "tandem"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("settings.py", "__pycache__"))
    done = run_python("import tandem", cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1 and "tandem.settings" in done.stderr


def test_the_package_is_typed() -> None:
    package = Path(tandem.__file__).parent
    assert (package / "py.typed").exists() and (package / "_native.pyi").exists()

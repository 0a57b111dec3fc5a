"""Settings: checked like the command line, written as TOML, generated from the program's own list."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import tandem
from tandem import _native


def test_the_settings_of_myxtts_become_ours(tmp_path: Path, program: Callable[..., str]) -> None:
    config = tandem.DataConfig(data_gpu=0, model_gpu=1, pipeline_buffer_size=75, model_start_delay=2.5)
    toml = config.to_toml()
    assert "data_gpu = 0" in toml and "model_gpu = 1" in toml
    assert "buffer_size = 75" in toml and "model_start_delay = 2.5" in toml
    converted = config.to_config()
    assert converted.devices.buffer_size == 75 and converted.model_start_delay == 2.5
    file = tmp_path / "run.toml"
    config.save(file)
    assert tandem.Config.read(file) == converted


@pytest.mark.parametrize(
    "settings, fact",
    [
        ({"data_gpu": 0}, "`--data-gpu 0` was given without `--model-gpu`"),
        ({"model_gpu": 1}, "`--model-gpu 1` was given without `--data-gpu`"),
        ({"data_gpu": 2, "model_gpu": 2}, "`--data-gpu` and `--model-gpu` both name GPU 2"),
    ],
)
def test_half_a_pair_of_gpus_is_refused_in_the_words_of_the_program(settings: Dict[str, Any], fact: str) -> None:
    for make in (
        lambda: tandem.DataConfig(**settings),
        lambda: tandem.DevicesConfig(**settings),
        lambda: tandem.Config.from_dict({"devices": settings}),
        lambda: tandem.Loader("demo", config={"devices": settings}),
    ):
        with pytest.raises(tandem.SettingsError) as error:
            make()
        assert "insufficient GPUs for multi-GPU mode" in error.value.fact and fact in error.value.fact
        assert "two different GPUs" in error.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        {"data_gpu": -1, "model_gpu": 1},
        {"pipeline_buffer_size": 0},
        {"model_start_delay": -1.0},
        {"batch_size": "many"},
        {"num_workers": 1.5},
    ],
)
def test_wrong_values_are_refused_with_a_hint(settings: Dict[str, Any]) -> None:
    with pytest.raises(tandem.SettingsError) as error:
        tandem.DataConfig(**settings)
    assert error.value.hint and "hint: " in str(error.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tandem.BatchConfig(batch_size=0),
        lambda: tandem.MelConfig(hop=0),
        lambda: tandem.TextConfig(languages=["klingon"]),
        lambda: tandem.Config(max_rejected=2.0),
        lambda: tandem.Config.from_dict({"batch": {"batch_sise": 4}}),
        lambda: tandem.Config.from_dict({"no_such_table": {}}),
    ],
)
def test_every_table_is_checked(make: Callable[[], Any]) -> None:
    with pytest.raises(tandem.SettingsError) as error:
        make()
    assert isinstance(error.value, ValueError) and error.value.hint


#: Values of every kind; each is wrong for some keys.
TRIALS = (-1, 0, 0.5, 1e300, 2**62, "", "nothing", True, [], ["xx"], [3, 2])


def toml_of(value: Any) -> str:
    return "true" if value is True else json.dumps(value) if not isinstance(value, float) else repr(value)


def test_every_key_is_refused_exactly_where_the_program_refuses_it(tmp_path: Path) -> None:
    path = os.environ.get("TANDEM")
    if not path:
        pytest.skip("TANDEM does not name the program")
    # Which GPUs exist is a fact of the machine. Voice, corpus and cache are files.
    elsewhere = {"devices.data_gpu", "devices.model_gpu", "devices.backend", "train.from_voice", "train_data", "val_data"}
    keys = [(entry["table"], entry["name"]) for entry in json.loads(_native.settings_reference())]
    trials = [
        (table, name, value)
        for table, name in keys
        if ".".join(filter(None, (table, name))) not in elsewhere
        for value in TRIALS
    ]
    assert len(keys) > 60

    def by_program(trial: Any) -> str:
        """Why the program refuses the value; empty if it reaches the corpus, which does not exist."""
        number, (table, name, value) = trial
        file = tmp_path / f"{number}.toml"
        file.write_text((f"[{table}]\n" if table else "") + f"{name} = {toml_of(value)}\n", encoding="utf-8")
        command = [path, "train", "--config", file, "--train-data", tmp_path / "no-corpus", "--backend", "cpu"]
        command += ["--checkpoint-dir", tmp_path / f"run{number}"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
        assert done.returncode == 2, (table, name, value, done.stderr)
        return "" if "no-corpus" in done.stderr else done.stderr

    def by_package(table: str, name: str, value: Any) -> str:
        tree: Dict[str, Any] = {name: value}
        for part in reversed(table.split(".") if table else []):
            tree = {part: tree}
        try:
            _native.check_settings(json.dumps(tree))
        except tandem.SettingsError as error:
            assert error.hint, (table, name, value)
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        programs = list(pool.map(by_program, enumerate(trials)))
    differing = [
        (*trial, said, package)
        for trial, said in zip(trials, programs)
        for package in [by_package(*trial)]
        if bool(said) != bool(package)
    ]
    assert not differing
    assert sum(map(bool, programs)) > 200


def test_a_value_that_was_changed_is_checked_again() -> None:
    config = tandem.BatchConfig(batch_size=4)
    config.batch_size = -4
    with pytest.raises(tandem.SettingsError):
        config.validate()
    with pytest.raises(tandem.SettingsError):
        config.to_toml()


def test_a_configuration_survives_its_file(tmp_path: Path) -> None:
    config = tandem.Config(
        num_workers=3,
        batch=tandem.BatchConfig(batch_size=12, seed=5),
        train=tandem.TrainConfig(model_size="small", optimizer=tandem.OptimizerConfig(lr=0.002)),
    )
    file = tmp_path / "run.toml"
    config.save(file)
    assert tandem.Config.read(file) == config


def test_a_loader_takes_settings_as_object_dict_and_file(make_loader: Any, tmp_path: Path) -> None:
    config = tandem.Config(batch=tandem.BatchConfig(seed=11))
    file = tmp_path / "run.toml"
    config.save(file)
    order = [[batch.ids for batch in make_loader(config=given)] for given in (config, {"batch": {"seed": 11}}, file)]
    assert order[0] == order[1] == order[2] != [batch.ids for batch in make_loader()]


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 0},
        {"batch_size": "8"},
        {"num_workers": -1},
        {"seed": 1.5},
        {"split": "test"},
        {"languages": "en"},
        {"config": 7},
        {"config": {"batch": 3}},
        {"config": {"devices": 3}},
        {"config": {"batch": {"seed": {1, 2}}}},
        {"max_rejected": float("nan")},
        {"cache_dir": 7},
        {"record": 7},
        {"split": 7},
        {"progress": 7},
    ],
)
def test_wrong_arguments_of_a_loader_are_refused(make_loader: Any, settings: Dict[str, Any]) -> None:
    with pytest.raises(tandem.SettingsError) as error:
        make_loader(**settings)
    assert error.value.hint and str(error.value).count("hint: ") == 1
    assert "line" not in error.value.hint, "a script has no configuration file"


@pytest.mark.parametrize("corpus", ["no-such-directory", 7, None, b"demo"])
def test_what_is_no_corpus_is_refused(corpus: Any) -> None:
    with pytest.raises((tandem.TandemError, TypeError)) as error:
        tandem.Loader(corpus)
    if isinstance(error.value, tandem.TandemError):
        assert error.value.hint


def test_an_empty_corpus_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(tandem.CorpusError) as error:
        tandem.prepare(tmp_path)
    assert error.value.hint


@pytest.mark.parametrize("epoch", [-1, 1.0, True, "2", 2**40, None])
def test_an_epoch_is_a_number_from_zero(make_loader: Any, epoch: Any) -> None:
    loader = make_loader()
    with pytest.raises(tandem.SettingsError):
        loader.set_epoch(epoch)


def test_the_generated_classes_are_those_of_this_program() -> None:
    script = Path(__file__).resolve().parents[3] / "xtask/generators/make_python_settings.py"
    if not script.exists():
        pytest.skip("not in the source tree")
    spec = importlib.util.spec_from_file_location("make_python_settings", script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = Path(tandem.__file__).with_name("settings.py").read_text(encoding="utf-8")
    made = module.source(json.loads(_native.settings_reference()), _native.data_keys())
    assert made == written, "run xtask/generators/make_python_settings.py"

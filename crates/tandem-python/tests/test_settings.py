"""Settings: checked like the command line, written as TOML, generated from the program's own list."""

from __future__ import annotations

import importlib.util
import json
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
        {"cache_dir": 7},
    ],
)
def test_wrong_arguments_of_a_loader_are_refused(make_loader: Any, settings: Dict[str, Any]) -> None:
    with pytest.raises((tandem.SettingsError, TypeError)) as error:
        make_loader(**settings)
    if isinstance(error.value, tandem.SettingsError):
        assert error.value.hint


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
    script = Path(__file__).resolve().parents[3] / "scripts/make_python_settings.py"
    if not script.exists():
        pytest.skip("not in the source tree")
    spec = importlib.util.spec_from_file_location("make_python_settings", script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = Path(tandem.__file__).with_name("settings.py").read_text(encoding="utf-8")
    made = module.source(json.loads(_native.settings_reference()), _native.data_keys())
    assert made == written, "run scripts/make_python_settings.py"

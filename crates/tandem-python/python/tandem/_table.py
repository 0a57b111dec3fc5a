"""What all settings classes share: checks by the program's own parser, and TOML.

The classes themselves are in :mod:`tandem.settings`, which is generated.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, ClassVar, Dict, Mapping, Optional, TypeVar, Union

from tandem import _native
from tandem.errors import SettingsError

Tree = Dict[str, Any]
PathLike = Union[str, "os.PathLike[str]"]
T = TypeVar("T", bound="Table")


class Table:
    """Settings of one table. A field that is ``None`` keeps its default."""

    _place: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        """Checks the values as ``tandem train --config`` would; raises :class:`SettingsError`."""
        _native.check_settings(as_json(self.tree()))

    def to_dict(self) -> Tree:
        """The keys of this table that are set."""
        found: Tree = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Table):
                value = value.to_dict() or None
            if value is not None:
                found[field.name] = value
        return found

    def tree(self) -> Tree:
        """The same from the root of a configuration file."""
        found = self.to_dict()
        for name in reversed(self._place.split(".") if self._place else []):
            found = {name: found}
        return found

    def to_toml(self) -> str:
        """The settings as a configuration file for ``tandem ... --config``."""
        return _native.settings_to_toml(as_json(self.tree()))

    def save(self, path: PathLike) -> None:
        """Writes :meth:`to_toml` to a file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")


def read_tree(path: PathLike) -> Tree:
    """The keys that a TOML or YAML file sets, of Tandem or MyXTTS."""
    tree: Tree = json.loads(_native.read_settings(os.fspath(path)))
    return tree


def as_json(tree: Mapping[str, Any]) -> str:
    """The tree for the native half; paths become text."""

    def other(value: object) -> object:
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        raise SettingsError([f"`{value!r}` is no setting"], "give numbers, text, lists and tables")

    try:
        return json.dumps(tree, default=other, allow_nan=False)
    except SettingsError:
        raise
    except ValueError as error:
        raise SettingsError([f"a setting is NaN or infinite: {error}"], "give a finite number") from error


def settings_tree(config: Union[None, Table, Mapping[str, Any], PathLike], keys: Mapping[str, Any]) -> Tree:
    """The settings of ``config``, with ``keys`` (full name to value; ``None`` is not set) over them."""
    tree: Tree
    if config is None:
        tree = {}
    elif isinstance(config, Table):
        tree = config.tree()
    elif isinstance(config, Mapping):
        tree = json.loads(as_json(config))
    elif isinstance(config, (str, os.PathLike)):
        tree = read_tree(config)
    else:
        raise SettingsError(
            [f"`config` is a {type(config).__name__}"],
            "give a tandem.Config, a dict, or the path of a configuration file",
        )
    for key, value in keys.items():
        if value is None:
            continue
        *tables, name = key.split(".")
        at = tree
        for table in tables:
            at = at.setdefault(table, {})
            if not isinstance(at, dict):
                raise SettingsError([f"`{table}` of `config` is a {type(at).__name__}"], "give a table of keys")
        at[name] = value
    return tree


def check_progress(progress: Optional[object]) -> None:
    """Refuses what cannot be called: it might be called only after an hour."""
    if progress is not None and not callable(progress):
        raise SettingsError(
            [f"`progress` is a {type(progress).__name__}"],
            "give a function of two numbers: the finished rows and all rows",
        )


def check_path(name: str, path: Optional[object]) -> None:
    """Refuses what is no path."""
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise SettingsError([f"`{name}` is a {type(path).__name__}"], "give a path as text or as a `Path`")


def corpus_name(corpus: Optional[object]) -> str:
    """The path of a corpus as text."""
    if isinstance(corpus, (str, os.PathLike)):
        return str(os.fspath(corpus))
    raise SettingsError(
        [f"the corpus is a {type(corpus).__name__}"],
        "give the path of a directory or manifest, or `demo` for the built-in corpus",
    )

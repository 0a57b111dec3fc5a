"""Writes crates/tandem-python/python/tandem/settings.py from the reference of the settings.

In: the keys as the built package knows them. Out: one typed class per table of the configuration file. A test
of the package compares the two; run this again when it fails:

    python xtask/generators/make_python_settings.py      in an environment with the built package
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

TARGET = Path(__file__).resolve().parents[2] / "crates/tandem-python/python/tandem/settings.py"

HEADER = '''\
"""The settings of Tandem as typed classes.

Written by ``xtask/generators/make_python_settings.py``; do not edit: a test compares the two.

The names are the keys of the configuration file. A field that is ``None`` keeps its default. Every class checks
its values like the command line when it is created, and again with ``validate()``; ``to_toml()`` gives a file for
``tandem ... --config``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import ClassVar, List, Literal, Optional

from tandem import _native
from tandem._table import PathLike, Table, Tree, as_json, read_tree
'''

DATA_CONFIG = '''

@dataclass
class DataConfig(Table):
    """The settings of a data pipeline under the names of MyXTTS' ``DataConfig``, for scripts that move here.

    ``to_toml()`` and ``to_config()`` use the names of Tandem.
    """
'''

DATA_METHODS = '''
    def tree(self) -> Tree:
        """The settings under the names of Tandem, from the root of a configuration file."""
        tree: Tree = json.loads(_native.convert_settings(as_json({"data": self.to_dict()})))
        return tree

    def to_config(self) -> Config:
        """The same settings as a :class:`Config`."""
        return Config.from_dict(self.tree())
'''

CONFIG_METHODS = '''
    @classmethod
    def from_dict(cls, tree: Tree) -> Config:
        """Settings from a dict of tables, as in a configuration file."""
        _native.check_settings(as_json(tree))
        train = dict(tree.get("train", {}))
        optimizer, alignment = train.pop("optimizer", {}), train.pop("alignment", {})
        own = {key: value for key, value in tree.items() if not isinstance(value, dict)}
        return cls(
            **own,
            %(tables)s
            train=TrainConfig(
                **train,
                optimizer=OptimizerConfig(**optimizer),
                alignment=AlignmentConfig(**alignment),
            ),
        )

    @classmethod
    def read(cls, path: PathLike) -> Config:
        """Settings from a TOML or YAML file of Tandem or MyXTTS."""
        return cls.from_dict(read_tree(path))
'''

KINDS = {
    "whole number": "int",
    "number": "float",
    "true or false": "bool",
    "text": "str",
    "character": "str",
    "path": "PathLike",
    "list of texts": "List[str]",
    "list of words": "List[str]",
    "list of whole numbers": "List[int]",
    "list of numbers": "List[float]",
    # those of MyXTTS
    "a whole number from 0 up": "int",
    "a number": "float",
    "a text": "str",
    "a list of language tags": "List[str]",
}


def class_of(table: str) -> str:
    """`train.optimizer` becomes `OptimizerConfig`, no table `Config`."""
    return f"{table.split('.')[-1].capitalize()}Config" if table else "Config"


def type_of(entry: dict[str, str]) -> str:
    if entry["kind"] == "word":
        words = ", ".join(f'"{word.strip("`")}"' for word in entry["allowed"].split(", "))
        return f"Literal[{words}]"
    return KINDS[entry["kind"]]


def described(entry: dict[str, str]) -> str:
    """The comment above a field."""
    parts = [entry["help"].rstrip(".") + "."]
    if entry["allowed"] and entry["kind"] != "word":
        parts.append(f"Allowed: {entry['allowed']}.")
    parts.append(f"Default: {entry['default']}.")
    text = " ".join(parts).replace("`", "``")
    # A value such as `built-in-english` stays on one line.
    indents = {"initial_indent": "    #: ", "subsequent_indent": "    #: "}
    return textwrap.fill(text, 112, break_on_hyphens=False, **indents)


def table_class(table: str, entries: list[dict[str, str]], inner: list[str]) -> str:
    heading = f"Settings of the table ``[{table}]``." if table else "All settings: a configuration file."
    lines = ["", "", "@dataclass", f"class {class_of(table)}(Table):", f'    """{heading}"""', ""]
    if table:
        lines += [f'    _place: ClassVar[str] = "{table}"', ""]
    for entry in entries:
        lines += [described(entry), f"    {entry['name']}: Optional[{type_of(entry)}] = None"]
    for name in inner:
        made = class_of(name)
        lines.append(f"    {name.split('.')[-1]}: {made} = field(default_factory=lambda: {made}())")
    return "\n".join(lines) + "\n"


def source(reference: list[dict[str, str]], data_keys: list[tuple[str, str, str]]) -> str:
    """The whole module."""
    tables: dict[str, list[dict[str, str]]] = {}
    for entry in reference:
        tables.setdefault(entry["table"], []).append(entry)
    names = [name for name in tables if name]
    text = HEADER
    # Inner tables first: a class may only use those above it.
    for name in sorted(names, key=lambda name: -name.count(".")):
        inner = [other for other in names if other.startswith(f"{name}.")]
        text += table_class(name, tables[name], inner)
    top = [name for name in names if "." not in name]
    text += table_class("", tables[""], top)
    plain = [name for name in top if name != "train"]
    arguments = "\n            ".join(f'{name}={class_of(name)}(**tree.get("{name}", {{}})),' for name in plain)
    text += CONFIG_METHODS % {"tables": arguments}
    text += DATA_CONFIG
    for name, expected, ours in data_keys:
        kind = "bool" if expected == "true or false" else KINDS[expected]
        text += f"\n    #: ``{ours}``\n    {name}: Optional[{kind}] = None"
    return text + "\n" + DATA_METHODS


def main() -> None:
    from tandem import _native

    text = source(json.loads(_native.settings_reference()), _native.data_keys())
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET}: written")


if __name__ == "__main__":
    main()

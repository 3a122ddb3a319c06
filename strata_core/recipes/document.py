"""A recipe as it is written: its tables before they are checked, and where each value was written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strata_core.errors import RecipeError, UsageError
from strata_core.files import expand_path
from strata_core.recipes.key_lines import KeyPath
from strata_core.recipes.names import find_recipe
from strata_core.recipes.overrides import UNSET, parse_override
from strata_core.recipes.paths import absolute_paths
from strata_core.recipes.toml_text import read_toml


@dataclass
class Document:
    """Tables merged from a recipe, what it starts from, and overrides.

    Attributes:
        name: how messages call the recipe.
        tables: nested dictionaries, as TOML gives them; paths are absolute.
        places: for each key written anywhere, "FILE:LINE" or "--set TEXT".
    """

    name: str
    tables: dict[str, Any] = field(default_factory=dict)
    places: dict[KeyPath, str] = field(default_factory=dict)

    def place_of(self, path: KeyPath) -> str:
        """Where a key was written, or something in it, or the table around it, or the recipe itself."""
        if path in self.places:
            return self.places[path]
        # `--set table.key=value` writes a key, and with it a table that nobody else may have written.
        inner = next((place for key, place in self.places.items() if path and key[: len(path)] == path), None)
        if inner is not None:
            return inner
        for length in range(len(path) - 1, 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.name

    def value_of(self, path: KeyPath) -> Any:
        """The value at a key, None where there is none."""
        value: Any = self.tables
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return None
        return value


def read_document(
    name_or_path: str | os.PathLike[str],
    path_keys: Collection[str],
    alternatives: Collection[tuple[str, str]],
    overrides: Sequence[str] = (),
) -> Document:
    """Reads a recipe, the recipes it starts from, and overrides, the later winning over the earlier.

    Args:
        name_or_path: a shipped recipe's name, or a path.
        path_keys: dotted keys whose values are paths, made absolute here: against the folder of the file they
            are written in, or the working directory in an override.
        alternatives: pairs of dotted keys of which one is meant: writing one takes back the other of a
            layer below.
        overrides: texts of the form key=value.

    Raises:
        UsageError: a file is not there, or an override is malformed.
        RecipeError: a file is not TOML, or recipes start from each other in a circle.
    """
    document = Document(os.fspath(name_or_path))
    for path, tables, lines in _chain(name_or_path):
        _make_paths_absolute(tables, path_keys, path.parent)
        _take_back_alternatives(document.tables, tables, alternatives)
        _merge(document.tables, tables)
        document.places.update({key: f"{path}:{line}" for key, line in lines.items()})
    for text in overrides:
        _override(document, text, path_keys, alternatives)
    return document


def _chain(name_or_path: str | os.PathLike[str]) -> list[tuple[Path, dict[str, Any], dict[KeyPath, int]]]:
    """The files from the first base to the recipe itself, each with its tables and their lines."""
    chain: list[tuple[Path, dict[str, Any], dict[KeyPath, int]]] = []
    path = find_recipe(name_or_path)
    while True:
        seen = [earlier for earlier, _, _ in chain]
        if any(os.path.realpath(path) == os.path.realpath(earlier) for earlier in seen):
            circle = " -> ".join(map(str, [*seen, path]))
            raise RecipeError(f"recipes start from each other in a circle: {circle}")
        tables, lines = read_toml(path, str(path))
        chain.append((path, tables, lines))
        base = tables.pop("base", None)
        if base is None:
            return chain[::-1]
        where = f"{path}:{lines[('base',)]}"
        if not isinstance(base, str):
            raise RecipeError(f"{where}: base = {base!r}: must be the name or path of another recipe")
        path = _find_base(base, path.parent, where)


def _find_base(base: str, folder: Path, where: str) -> Path:
    beside = folder / expand_path(base)
    try:
        return beside if beside.is_file() else find_recipe(base)
    except UsageError as error:
        raise RecipeError(f"{where}: base = {base!r}: {error.message}", hint=error.hint) from None


def _override(
    document: Document, text: str, path_keys: Collection[str], alternatives: Collection[tuple[str, str]]
) -> None:
    keys, value = parse_override(text)
    if keys[0] in ("base", "kind"):
        raise UsageError(f"--set {text}: `{keys[0]}` can only be written in a recipe file")
    if value is UNSET:
        _remove(document.tables, ".".join(keys))
        return
    tables: dict[str, Any] = {}
    inner = tables
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = value
    _make_paths_absolute(tables, path_keys, Path.cwd())
    _take_back_alternatives(document.tables, tables, alternatives)
    _merge(document.tables, tables)
    for path in [path for path in document.places if path[: len(keys)] == keys]:
        del document.places[path]
    document.places.update(dict.fromkeys(_paths_in(value, keys), f"--set {text}"))


def _paths_in(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths_in(inner, (*path, key))


def _take_back_alternatives(
    under: dict[str, Any], over: dict[str, Any], alternatives: Collection[tuple[str, str]]
) -> None:
    for pair in alternatives:
        for written, other in (pair, pair[::-1]):
            if _holder(over, written) is not None and _holder(over, other) is None:
                _remove(under, other)


def _remove(tables: dict[str, Any], dotted: str) -> None:
    holder = _holder(tables, dotted)
    if holder is not None:
        del holder[dotted.rpartition(".")[2]]


def _holder(tables: dict[str, Any], dotted: str) -> dict[str, Any] | None:
    """The table in which a key is written, None where it is not."""
    *outer, last = dotted.split(".")
    inner: Any = tables
    for key in outer:
        inner = inner.get(key) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) and last in inner else None


def _merge(under: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(under.get(key), dict):
            _merge(under[key], value)
        else:
            under[key] = value


def _make_paths_absolute(tables: dict[str, Any], path_keys: Collection[str], folder: Path) -> None:
    for dotted in path_keys:
        holder, key = _holder(tables, dotted), dotted.rpartition(".")[2]
        if holder is not None:
            holder[key] = absolute_paths(holder[key], folder)

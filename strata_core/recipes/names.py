"""Recipes shipped with strata, found by name: "lm/small" is recipes/lm/small.toml."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from strata_core.errors import UsageError
from strata_core.files import expand_path

_PACKAGE = Path(__file__).parent


def shipped_folder() -> Path:
    """Where the shipped recipes lie: inside the package in a wheel, at the top of a source tree otherwise."""
    packed = _PACKAGE / "shipped"
    return packed if packed.is_dir() else _PACKAGE.parents[1] / "recipes"


def list_recipes() -> list[str]:
    """The names of all shipped recipes, sorted."""
    folder = shipped_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))


def find_recipe(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of a recipe given by name or by path.

    What ends in `.toml`, or begins with `/`, `./`, `../` or `~`, is a path; anything else is a shipped
    recipe's name first, and a path only where no shipped recipe has that name.

    Raises:
        UsageError: neither is there.
    """
    text = os.fspath(name_or_path)
    path = expand_path(text)
    if text.endswith(".toml") or text.startswith(("/", "./", "../", "~")):
        if not os.path.lexists(path):
            raise UsageError(f"{text}: there is no such recipe file", hint=_known(text))
        return path
    names = list_recipes()
    if text in names:
        return shipped_folder() / f"{text}.toml"
    if text and path.exists():
        return path
    raise UsageError(f"there is no recipe called {text!r}", hint=_known(text))


def _known(text: str) -> str:
    names = list_recipes()
    close = difflib.get_close_matches(text.removesuffix(".toml"), names, n=1)
    close += [name for name in names if name.rpartition("/")[2] == text and name not in close]
    return f"did you mean {close[0]}?" if close else f"shipped recipes: {', '.join(names)}"

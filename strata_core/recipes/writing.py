"""A recipe as TOML, and its identity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.recipes.paths import path_text

if TYPE_CHECKING:
    from pydantic import BaseModel


def recipe_tables(recipe: BaseModel) -> dict[str, Any]:
    """The recipe as nested dictionaries of TOML and JSON values: absent settings left out, paths as text."""
    return _plain(recipe.model_dump(exclude_none=True))


def dump_recipe(recipe: BaseModel) -> bytes:
    """The recipe as TOML (UTF-8), itself a recipe that loads to an equal one anywhere on this machine."""
    import tomli_w

    return tomli_w.dumps(recipe_tables(recipe)).encode()


def recipe_digest(recipe: BaseModel) -> str:
    """SHA-256, in hex, of the recipe's canonical JSON (RFC 8785): the same however they were written."""
    import hashlib

    from strata_core.manifest import canonical_json

    return hashlib.sha256(canonical_json(recipe_tables(recipe))).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return path_text(value) if isinstance(value, Path) else value

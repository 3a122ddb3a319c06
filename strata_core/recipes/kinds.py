"""The kinds of recipe, and where the settings of each are declared."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from strata_core.errors import UsageError

if TYPE_CHECKING:
    from strata_core.recipes.settings import Table

MODELS = {"lm": ("lm", "LMRecipe"), "graph": ("graph", "GraphRecipe"), "corpus": ("corpus", "CorpusRecipe")}
"""For each kind the module of this package that declares it, and its class."""


def recipe_model(kind: str) -> type[Table]:
    """The pydantic model of a kind of recipe.

    Raises:
        UsageError: there is no such kind.
    """
    if kind not in MODELS:
        raise UsageError(f"there is no kind of recipe called {kind!r}", hint=f"kinds: {', '.join(MODELS)}")
    module, name = MODELS[kind]
    model: type[Table] = getattr(importlib.import_module(f"strata_core.recipes.{module}"), name)
    return model

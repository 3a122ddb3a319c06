"""A corpus recipe under the options of `strata prepare-corpus`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strata_core.recipes.loading import ALTERNATIVES, load_recipe


def with_recipe(name_or_path: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's settings with the options that were given in their place.

    An option takes back its alternative in the recipe: `--sample` the inputs, `--tokenizer` the vocabulary size.

    Args:
        name_or_path: the recipe.
        options: by the recipe's keys; None stands for an option that was not given.

    Raises:
        UsageError, RecipeError: the recipe is not there or not right.
    """
    prepare = load_recipe(name_or_path, "corpus").prepare
    given = {key: value for key, value in options.items() if value is not None}
    replaced = set(given)
    for first, second in ALTERNATIVES["corpus"]:
        names = {first.rpartition(".")[2], second.rpartition(".")[2]}
        if names & replaced:
            replaced |= names
    return {**{key: value for key, value in prepare if key not in replaced and value is not None}, **given}

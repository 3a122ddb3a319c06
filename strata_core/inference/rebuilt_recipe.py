"""A recipe for a checkpoint that came without its run: what config.json tells, and the kind's defaults for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from strata_core.errors import DataError
from strata_core.recipes.deriving import fill_derived
from strata_core.recipes.kinds import recipe_model
from strata_core.recipes.tables import TrainingRecipe
from strata_core.tasks.registry import kind_named


def rebuilt_recipe(config: Mapping[str, Any], *, source: str) -> TrainingRecipe:
    """Settings under which a task builds the model of a config.json; they name no corpus.

    Args:
        config: the content of the file.
        source: what to call it in an error.

    Raises:
        DataError: it is of a kind, or has a value, that this version does not know.
    """
    kind = kind_named(config.get("kind"), source=source)
    try:
        model = recipe_model(kind.recipe_kind).model_validate(kind.recipe_tables(config))
        return fill_derived(model)  # type: ignore[arg-type]
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise DataError(
            f"{source}: no model of kind {kind.name!r} can be built from it: {error}",
            hint="keep the checkpoint inside its run: the run's recipe tells the rest",
        ) from error

"""Settings that the reasoner over small graphs has alone."""

from __future__ import annotations

from pathlib import Path

from strata_core.errors import RecipeError
from strata_core.recipes.graph import GraphRecipe


def refuse_reasoner_settings(recipe: GraphRecipe, corpus: Path) -> None:
    """Refuses settings that act on the reasoner over small graphs alone, where a corpus is for another model.

    Raises:
        RecipeError: some are not as they are where a recipe says nothing; they are listed.
    """
    values = {
        "optimizer.freeze_query_encoder": (recipe.optimizer.freeze_query_encoder, False),
        "optimizer.query_encoder_lr_scale": (recipe.optimizer.query_encoder_lr_scale, 1.0),
        "objective.on_policy_selection": (recipe.objective.on_policy_selection, False),
    }
    problems = tuple(f"{key} is {value!r}" for key, (value, default) in values.items() if value != default)
    if problems:
        raise RecipeError(
            f"these settings do nothing on {corpus}",
            problems=problems,
            hint="they serve queries over small graphs (generated ones, or JSON Lines); leave them out",
        )

"""The kinds of task there are, and which of them serves a recipe, a corpus or a checkpoint.

Loads no torch until a task or a model is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.errors import DataError, RecipeError
from strata_core.tasks.kind import TaskKind

if TYPE_CHECKING:
    from torch import nn

    from strata_core.recipes.tables import TrainingRecipe
    from strata_core.training.task import Task

KINDS = [
    "strata_core.tasks.sentence_structure.kind",
    "strata_core.tasks.language_model.kind",
    "strata_core.tasks.link_prediction.kind",
    "strata_core.tasks.relation_prediction.kind",
    "strata_core.tasks.graph_queries.kind",
]
"""Modules, each with a `KIND`. Of those that suit a recipe and its corpus the first is taken: special ones first."""


def task_kinds() -> Iterator[TaskKind]:
    """All kinds, in the order of KINDS."""
    for module in KINDS:
        yield import_module(module).KIND


def kind_named(name: object, *, source: str = "config.json") -> TaskKind:
    """The kind that a config.json names.

    Args:
        name: its `kind`, whatever it is.
        source: where it stands, for the error.

    Raises:
        DataError: this version has no such kind.
    """
    kinds = {kind.name: kind for kind in task_kinds()}
    if not isinstance(name, str) or name not in kinds:
        raise DataError(
            f"{source} names the kind of model {name!r}; known: {', '.join(sorted(kinds))}",
            hint="load it with the version of strata that wrote it",
        )
    return kinds[name]


def make_task(recipe: TrainingRecipe, data: Any) -> Task:
    """The task of a recipe on its opened data (`data.open_data`).

    Raises:
        RecipeError, DataError: they do not go together.
    """
    kind = next((kind for kind in task_kinds() if kind.recipe_kind == recipe.kind and kind.suits(recipe, data)), None)
    if kind is None:
        raise RecipeError(f"no task of kind {recipe.kind!r} goes with {data.path}")
    task = kind.make_task(recipe, data)
    if recipe.evaluation.metric not in task.metric_directions:
        raise RecipeError(
            f"evaluation.metric is {recipe.evaluation.metric!r}, which this corpus does not give",
            hint=f"{data.path} gives {', '.join(task.metric_directions)}",
        )
    return task


def model_from_config(config: Mapping[str, Any]) -> nn.Module:
    """A module of the config's shape; torch's default values until `initialise` or a checkpoint sets them.

    Raises:
        DataError: the kind or a field is unknown, or a field is missing.
    """
    return kind_named(config.get("kind")).build_model(config)


def recommended_recipe(corpus: Path, info: Mapping[str, Any]) -> tuple[str, TaskKind]:
    """The shipped recipe that trains on a corpus, and the kind that recommends it.

    Args:
        corpus: its directory.
        info: its corpus.json; empty where that cannot be read, which is taken for text.
    """
    for kind in task_kinds():
        recipe = kind.recommends(corpus, info)
        if recipe is not None:
            return recipe, kind
    raise DataError(f"{corpus}: no task is for corpora of kind {info.get('kind')!r}")

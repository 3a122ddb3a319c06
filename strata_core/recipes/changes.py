"""What differs between two recipes, and which differences a resumed run may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strata_core.dotted import dotted
from strata_core.errors import RecipeError
from strata_core.recipes.writing import recipe_tables

if TYPE_CHECKING:
    from pydantic import BaseModel

RESUMABLE_KEYS = frozenset(
    {
        "run.max_steps",
        "run.log_every",
        "evaluation.every",
        "evaluation.patience",
        "checkpoint.every",
        "checkpoint.keep_last",
        "checkpoint.keep_every",
        "batch.num_workers",
        "memory.recompute",
        "distributed.timeout_seconds",
    }
)
"""What a resume may change: no step already taken would have been another. `run.max_steps` only goes up."""


def changed_keys(old: BaseModel, new: BaseModel) -> list[tuple[str, Any, Any]]:
    """The settings that differ, as (dotted key, old value, new value); None stands for absent."""
    before, after = dotted(recipe_tables(old)), dotted(recipe_tables(new))
    keys = list(dict.fromkeys([*before, *after]))
    return [(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]


def check_resumable(old: BaseModel, new: BaseModel) -> list[tuple[str, Any, Any]]:
    """The changes from a run's recipe to the one it is resumed with, when all of them are allowed.

    Raises:
        RecipeError: one problem for each change that would alter the past, with key, old and new value.
    """
    changes = changed_keys(old, new)
    problems = []
    for key, before, after in changes:
        if key not in RESUMABLE_KEYS:
            problems.append(f"{key}: {before!r} -> {after!r}: cannot change in a run that has started")
        elif key == "run.max_steps" and after < before:
            problems.append(f"{key}: {before!r} -> {after!r}: can only go up")
    if problems:
        raise RecipeError(
            "the run cannot go on with these settings",
            problems=tuple(problems),
            hint=f"a resume may change {', '.join(sorted(RESUMABLE_KEYS))}; for others start a new run",
        )
    return changes

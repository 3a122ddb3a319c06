"""The sessions that made a run: under which settings and in which environment each of its steps was trained."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strata_core.dotted import dotted
from strata_core.errors import DataError, RecipeError
from strata_core.recipes import load_training_recipe
from strata_core.recipes.changes import check_resumable
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.run.folder import RECIPE_NAME, RunFolder


@dataclass(frozen=True)
class TrainingSession:
    """One process's (or one set of ranks') part in a run.

    Attributes:
        first_step: updates that were done when it began.
        recipe: its settings, changes made by resumes included.
        environment: as it was recorded, see `record.environment_record`.
    """

    first_step: int
    recipe: TrainingRecipe
    environment: Mapping[str, Any]


def sessions_between(run: RunFolder, from_step: int, to_step: int) -> list[TrainingSession]:
    """The sessions that trained the steps after `from_step` up to `to_step`, in their order; at least one.

    A session that went on from an earlier step did all later steps again, so those of sessions before it do not count.

    Raises:
        DataError: the records do not tell, or tell of what no resume may do.
    """
    kept: list[TrainingSession] = []
    for session in _recorded_sessions(run):
        kept = [earlier for earlier in kept if earlier.first_step < session.first_step]
        kept.append(session)
    begun = [session for session in kept if session.first_step < to_step] or kept[:1]
    before = [session for session in begun if session.first_step <= from_step]
    return begun[max(len(before) - 1, 0) :]


def _recorded_sessions(run: RunFolder) -> list[TrainingSession]:
    recipe = load_training_recipe(run.path / RECIPE_NAME)
    found = [TrainingSession(0, recipe, _checked(run.manifest.record.get("environment"), run))]
    changes: dict[str, Any] = {}
    for event in run.events.read():
        match event:
            case {"event": "settings changed", "changes": dict(changed)}:
                changes |= {key: _new_value(pair, run) for key, pair in changed.items()}
            case {"event": "environment", "step": int(step)}:
                found.append(TrainingSession(step, _changed(recipe, changes, run), _checked(event, run)))
    return found


def _changed(recipe: TrainingRecipe, changes: Mapping[str, Any], run: RunFolder) -> TrainingRecipe:
    """The run's recipe with changed settings; numbers, texts and truth values are written the same in JSON and TOML."""
    overrides = [f"{key}={'' if value is None else json.dumps(value)}" for key, value in changes.items()]
    try:
        changed = load_training_recipe(run.path / RECIPE_NAME, overrides)
        check_resumable(recipe, changed)
    except RecipeError as error:
        problems = "; ".join(error.problems)
        raise DataError(f"{run.events.path}: no resume can have made these changes: {problems}") from error
    return changed


def _new_value(pair: Any, run: RunFolder) -> Any:
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise DataError(f"{run.events.path}: a changed setting is {pair!r}, not an old and a new value")
    return pair[1]


def _checked(environment: Any, run: RunFolder) -> dict[str, Any]:
    """The environment without what belongs to the event that tells it."""
    match environment:
        case {
            "device": "cpu" | "cuda" | "mps",
            "threads": int(),
            "world_size": int(),
            "determinism": {"obtained": bool()},
        }:
            return {key: value for key, value in environment.items() if key not in ("event", "step", "timing")}
    raise DataError(f"{run.path} does not record its device, threads, ranks and determinism")


def environment_differences(recorded: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The names, dotted, whose values differ, with both values."""
    ours, theirs = dotted(present), dotted(recorded)
    names = dict.fromkeys([*theirs, *ours])
    return {name: (theirs.get(name), ours.get(name)) for name in names if theirs.get(name) != ours.get(name)}

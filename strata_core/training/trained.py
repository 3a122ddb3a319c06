"""A trained model found again: the checkpoint behind a path, and the settings it was trained under."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from strata_core.dotted import dotted
from strata_core.errors import UsageError
from strata_core.manifest import MANIFEST_NAME, Manifest
from strata_core.observer import SILENT, Observer
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.checkpoint import LoadedCheckpoint, copy_tensors, load_checkpoint, model_tensors, newest_whole
from strata_core.training.checkpoint.folders import named_checkpoint
from strata_core.training.checkpoint_choice import BEST, LATEST
from strata_core.training.progress import TrainerState
from strata_core.training.run.folder import RECIPE_NAME, RunFolder

BEST_OR_LATEST = "best or latest"
"""What is taken of a run where nothing is asked for: its best checkpoint, or the latest where it has no best one."""


@dataclass(frozen=True)
class Trained:
    """A checkpoint whose files match their manifest.

    Attributes:
        path: what was named.
        checkpoint: without optimizer state.
        run: the run it belongs to; None where that is not there.
    """

    path: Path
    checkpoint: LoadedCheckpoint
    run: RunFolder | None

    @property
    def config(self) -> dict[str, Any]:
        """config.json: the kind of model, its shape, and what else it takes to build it."""
        return self.checkpoint.config

    @property
    def step(self) -> int:
        """Updates that the weights have had.

        Raises:
            DataError: trainer.json is of another version, or lacks it.
        """
        return TrainerState.from_json(self.checkpoint.trainer).progress.step

    def recipe(self) -> TrainingRecipe | None:
        """The run's settings, with its corpus where it is now; None without the run."""
        if self.run is None:
            return None
        return self.run.with_corpus_found(self.run.recipe_with(())[0])

    @property
    def corpus_digest(self) -> str | None:
        """Of the corpus it was trained on; None without the run."""
        return None if self.run is None else self.run.manifest.record.get("corpus_digest")

    def load_into(self, model: nn.Module) -> None:
        """Gives a model the weights, and sets it to evaluation.

        Raises:
            DataError: they are not this model's.
        """
        copy_tensors(self.checkpoint.model, model_tensors(model), source=str(self.checkpoint.path))
        model.eval()


def find_trained(path: Path, *, choose: str = BEST_OR_LATEST, observer: Observer = SILENT) -> Trained:
    """Finds and verifies a checkpoint; nothing is changed, and a run may be in training meanwhile.

    Args:
        path: a run, or one of the checkpoint folders that runs have.
        choose: of a run: BEST_OR_LATEST, "latest" (the newest whole one), "best", or a step's number.
        observer: told which checkpoint it is.

    Raises:
        UsageError: there is neither a run nor a checkpoint at `path`, or the run has no such checkpoint.
        DataError: the checkpoint, or the run's recipe or manifest, is not whole.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file or directory", hint="name a run directory, or a checkpoint in one")
    describes = _description(path)
    if describes == "run":
        run = RunFolder.open(path)
        return Trained(path, load_checkpoint(_chosen(run, choose, observer), with_optimizer=False), run)
    if describes != "checkpoint":
        raise UsageError(
            f"{path} is {'a ' + describes if describes else 'neither a run nor a checkpoint'}",
            hint="name a directory that strata train-lm or train-graph made, or a step's folder in its checkpoints",
        )
    if choose != BEST_OR_LATEST:
        raise UsageError(f"--from {choose}: {path} is a checkpoint itself", hint="leave --from out, or name its run")
    checkpoint = load_checkpoint(path, with_optimizer=False)
    return Trained(path, checkpoint, _run_of(checkpoint))


def _description(path: Path) -> str | None:
    """What a folder's manifest describes; None without a manifest."""
    if not (path / MANIFEST_NAME).is_file():
        return "run" if (path / RECIPE_NAME).is_file() else None
    return Manifest.read(path).describes


def _chosen(run: RunFolder, choose: str, observer: Observer) -> Path:
    folder = run.checkpoints
    if not run.has_checkpoints:
        raise UsageError(f"{run.path} has no checkpoint yet", hint="wait for its first one")
    if choose == BEST_OR_LATEST:
        choose = BEST if os.path.lexists(folder / BEST) else LATEST
        observer.notice(f"taking the {choose} checkpoint of {run.path}")
    if choose == LATEST:
        newest, passed_over = newest_whole(folder)
        if passed_over:
            observer.warning(f"taking {newest.name}; passed over {'; '.join(passed_over)}")
        return newest
    return named_checkpoint(folder, choose)


def _run_of(checkpoint: LoadedCheckpoint) -> RunFolder | None:
    """The run two folders up, if it is the one that the checkpoint names as its parent."""
    place = checkpoint.path.parent.parent
    if not (place / MANIFEST_NAME).is_file() or _description(place) != "run":
        return None
    digest = Manifest.read(place).digest
    named = any(parent.describes == "run" and parent.digest == digest for parent in checkpoint.parents)
    return RunFolder.open(place) if named else None


def config_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """What differs between the config of a task on a corpus and that of a checkpoint, a line for each key."""
    here, there = dotted(json.loads(json.dumps(ours))), dotted(theirs)
    return [
        f"{key}: {_difference(here.get(key), there.get(key))}"
        for key in dict.fromkeys([*there, *here])
        if here.get(key) != there.get(key)
    ]


def _difference(here: Any, there: Any) -> str:
    if not (isinstance(here, list) and isinstance(there, list)):
        return f"{_shown(here)} here, {_shown(there)} in the checkpoint"
    only_here = [str(item) for item in here if item not in there]
    only_there = [str(item) for item in there if item not in here]
    counts = f"{len(here)} here, {len(there)} in the checkpoint"
    if not only_here and not only_there:
        return f"{counts}, in another order"
    parts = [("the corpus", only_here), ("the checkpoint", only_there)]
    return "; ".join([counts, *(f"only {who} has {_shortened(names)}" for who, names in parts if names)])


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _shortened([str(item) for item in value]) if isinstance(value, list) else str(value)


def _shortened(names: list[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

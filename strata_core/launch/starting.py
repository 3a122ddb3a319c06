"""Starts a run, or goes on with one: everything between a recipe and the engine's loop."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from strata_core.errors import PlaceTakenError, RecipeError, UsageError
from strata_core.launch import worker
from strata_core.launch.rank_environment import explained
from strata_core.launch.session import Session, open_store, process_ready, run_result, take_up
from strata_core.memory_fit import MemoryPlan
from strata_core.memory_fit.prediction import predict_memory
from strata_core.observer import SILENT, Observer
from strata_core.recipes.tables import TrainingRecipe
from strata_core.recipes.writing import dump_recipe
from strata_core.tasks.data import open_data
from strata_core.tasks.registry import make_task
from strata_core.training.checkpoint import LoadedCheckpoint, load_checkpoint, newest_whole
from strata_core.training.checkpoint.folders import named_checkpoint
from strata_core.training.distributed import choose_device
from strata_core.training.memory import resident_bytes
from strata_core.training.progress import TrainerState
from strata_core.training.run.folder import RunFolder
from strata_core.training.stop import StopRequests

ALREADY_FINISHED = "already finished"


def plan_memory(
    recipe: TrainingRecipe,
    *,
    device: str = "auto",
    world_size: int = 1,
    ranks_on_host: int = 1,
    device_memory_bytes: int | None = None,
    changeable: frozenset[str] | None = None,
    dry_run: bool = False,
    observer: Observer = SILENT,
) -> MemoryPlan:
    """What a rank of the run would need, beside what there is; a sample corpus is prepared for it.

    Args:
        recipe: a loaded recipe.
        device: "auto", "cpu", "cuda" or "mps"; the machine need not have one whose memory is given.
        world_size: ranks of the run.
        ranks_on_host: those of them on this machine.
        device_memory_bytes: memory of the device; None: what is free on this machine's.
        changeable: the settings that may change to make it fit; None: all.
        dry_run: whether nothing is to be trained now: what training would refuse is a warning then, since a sample may
            stand for the corpus that is to come.
        observer: shown the preparation of a sample.

    Raises:
        RecipeError, UsageError, DataError: recipe, device or corpus cannot be used. That a run cannot fit is in the
            plan, and comes before what its data lack.
    """
    elsewhere = device_memory_bytes is not None and device != "auto"
    device_type = device if elsewhere else choose_device(device, 0).type
    corpus = open_data(recipe, observer)
    refusal: RecipeError | None = None
    try:
        make_task(recipe, corpus).check()
    except RecipeError as error:
        refusal = error
    try:
        plan = predict_memory(
            lambda changed: make_task(changed, corpus),
            recipe,
            device_type=device_type,
            world_size=world_size,
            device_memory_bytes=device_memory_bytes,
            ranks_on_host=ranks_on_host,
            changeable=changeable,
            resident_bytes=resident_bytes() if world_size == 1 else 0,
        )
    except RecipeError as error:
        raise (explained(error, os.environ) if worker.is_worker() else error) from None
    if refusal is not None and dry_run:
        remedy = "" if refusal.hint is None else f" ({refusal.hint})"
        observer.warning(f"training would be refused: {refusal.message}{remedy}")
    elif refusal is not None and plan.fits:
        raise refusal
    return plan


def train(
    recipe: TrainingRecipe,
    out: Path,
    *,
    device: str = "auto",
    predicted_peak_bytes: int | None = None,
    observer: Observer = SILENT,
    stop: StopRequests | None = None,
) -> dict[str, Any]:
    """Trains a model into a new run directory.

    Args:
        recipe: a loaded recipe.
        out: the run directory to make.
        device: "auto", "cpu", "cuda" or "mps".
        predicted_peak_bytes: recorded beside the peak that is measured.
        observer: shown what happens.
        stop: requests to stop; the caller decides whether it listens to signals.

    Returns:
        The result as `strata train-lm --json` and `strata train-graph --json` print it.

    Raises:
        RecipeError, UsageError, DataError: recipe, device, corpus or warm start cannot be used; nothing was written.
        PlaceTakenError: `out` exists.
        DivergedError, StorageError: training failed; the checkpoints saved before are intact.
    """
    if os.path.lexists(out) and int(os.environ.get("RANK", "0")) == 0:
        raise PlaceTakenError(f"{out} exists already", hint=f"choose another --out, or: strata resume {out}")
    with process_ready(recipe, device) as (ranks, place):
        session = Session(recipe, place, ranks, observer, stop or StopRequests(), predicted_peak_bytes)
        parents = [session.corpus_parent(out)]
        if recipe.run.warm_start is not None:
            parents += session.warm_start(recipe.run.warm_start)
        if ranks.is_first:
            session.check_disk(out)
            RunFolder.create(out, dump_recipe(recipe), session.record(), tuple(parents))
        ranks.barrier()
        run = RunFolder(out)
        with run.held() if ranks.is_first else nullcontext():
            return session.start(run)


def recipe_to_resume(run_dir: Path, start_from: str, overrides: Sequence[str] = ()) -> TrainingRecipe | None:
    """The settings that a resume would go on with; None where a finished run leaves nothing to do.

    Raises:
        UsageError, RecipeError, DataError: as `resume_run`.
    """
    run = RunFolder.open(run_dir)
    recipe, _ = run.recipe_with(overrides)
    if start_from != "latest" or not run.has_checkpoints:
        return recipe
    newest, _ = newest_whole(run.checkpoints, verify=False)
    state = TrainerState.from_json(load_checkpoint(newest, verify=False, with_optimizer=False).trainer)
    return None if state.is_over(recipe) else recipe


def resume_run(
    run_dir: Path,
    *,
    start_from: str = "latest",
    overrides: Sequence[str] = (),
    device: str = "auto",
    predicted_peak_bytes: int | None = None,
    observer: Observer = SILENT,
    stop: StopRequests | None = None,
) -> dict[str, Any]:
    """Goes on with a run from a checkpoint; a run that is finished is left as it is.

    Args:
        run_dir: the run directory.
        start_from: "latest" (the newest whole checkpoint), "best", or a step's number.
        overrides: key=value texts; only what cannot alter the past.
        device, predicted_peak_bytes, observer, stop: as for `train`.

    Returns:
        The result as `strata resume --json` prints it; "stopped_because" is "already finished" where nothing was to do.

    Raises:
        UsageError, RecipeError: no such run or step, a change that would alter the past, or another corpus.
        PlaceTakenError: another process is training in the run.
        DataError: no usable checkpoint.
        DivergedError, StorageError: as for `train`.
    """
    run = RunFolder.open(run_dir)
    recipe, changes = run.recipe_with(overrides)
    with process_ready(recipe, device) as (ranks, place), run.held() if ranks.is_first else nullcontext():
        if ranks.is_first:
            # Clears what a kill left half done before any rank looks.
            open_store(run, recipe, observer)
        ranks.barrier()
        checkpoint = _starting_point(run, start_from, observer)
        state = TrainerState.from_json(checkpoint.trainer) if checkpoint else TrainerState()
        ranks.check_same(state.progress.step, "the checkpoint to go on from at step", place)
        _check_not_beyond(recipe, state, run)
        if checkpoint is not None and state.is_over(recipe):
            if start_from == "latest" and ranks.is_first:
                _end_what_a_kill_cut_off(run, recipe, state, observer)
            at = f"step {state.progress.step} of {recipe.run.max_steps}"
            observer.notice(f"{run.path} is already at {at}: nothing to do")
            return {**run_result(run, state, ALREADY_FINISHED), "checkpoint": str(checkpoint.path)}
        session = Session(recipe, place, ranks, observer, stop or StopRequests(), predicted_peak_bytes)
        session.check_same_corpus(run, checkpoint)
        if recipe.run.warm_start is not None and checkpoint is None:
            session.warm_start(recipe.run.warm_start)
        return session.go_on(run, checkpoint, changes, is_newest=start_from == "latest")


def _check_not_beyond(recipe: TrainingRecipe, state: TrainerState, run: RunFolder) -> None:
    step = state.progress.step
    if step > recipe.run.max_steps:
        raise UsageError(
            f"{run.path} is at step {step}, beyond run.max_steps {recipe.run.max_steps}",
            hint=f"raise it: --set run.max_steps={step + 1}",
        )


def _end_what_a_kill_cut_off(run: RunFolder, recipe: TrainingRecipe, state: TrainerState, observer: Observer) -> None:
    """Does what follows the rename of a run's last checkpoint, where a kill may have come in between."""
    if not run.manifest.state["final"]:
        take_up(open_store(run, recipe, observer), state, is_newest=True)
        run.close(final=True)


def _starting_point(run: RunFolder, start_from: str, observer: Observer) -> LoadedCheckpoint | None:
    """The checkpoint to go on from; None for a run that was stopped before it had any."""
    folder = run.checkpoints
    if start_from == "latest":
        if not run.has_checkpoints:
            observer.notice(f"{run.path} has no checkpoint yet: starting at step 0")
            return None
        path, passed_over = newest_whole(folder)
        if passed_over:
            observer.warning(f"going on from {path.name}; passed over {'; '.join(passed_over)}")
        return load_checkpoint(path, verify=False)
    return load_checkpoint(named_checkpoint(folder, start_from))

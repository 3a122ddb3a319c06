"""Starts a run, or goes on with one: everything between a recipe and the engine's loop."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from strata_core.errors import PlaceTakenError, RecipeError, UsageError
from strata_core.manifest import Parent
from strata_core.memory_fit import MemoryPlan
from strata_core.memory_fit.prediction import predict_memory
from strata_core.observer import SILENT, Observer
from strata_core.recipes.tables import TrainingRecipe
from strata_core.recipes.writing import dump_recipe, recipe_digest
from strata_core.training.allocator import keep_freed_memory
from strata_core.training.checkpoint import (
    CheckpointStore,
    LoadedCheckpoint,
    expected_checkpoint_bytes,
    load_checkpoint,
    missing_bytes,
    model_tensors,
    newest_whole,
)
from strata_core.training.checkpoint.folders import named_checkpoint
from strata_core.training.distributed import Ranks, choose_device, joined_ranks
from strata_core.training.engine import FINISHED, PREEMPTED, Engine
from strata_core.training.memory import peak_bytes
from strata_core.training.optimizer import trainable_parameters
from strata_core.training.precision import choose_precision
from strata_core.training.progress import TrainerState
from strata_core.training.record import environment_record, model_record, precision_record
from strata_core.training.run_folder import RunFolder
from strata_core.training.stop import StopRequests
from strata_core.training.tasks.kinds import make_task, open_data
from strata_core.training.warm_start import load_weights

ALREADY_FINISHED = "already finished"


def plan_memory(
    recipe: TrainingRecipe,
    *,
    device: str = "auto",
    world_size: int = 1,
    ranks_on_host: int = 1,
    device_memory_bytes: int | None = None,
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
    plan = predict_memory(
        lambda changed: make_task(changed, corpus),
        recipe,
        device_type=device_type,
        world_size=world_size,
        device_memory_bytes=device_memory_bytes,
        ranks_on_host=ranks_on_host,
    )
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
            _open_store(run, recipe, observer)
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
            return {**_result(run, state, ALREADY_FINISHED), "checkpoint": str(checkpoint.path)}
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


def _take_up(store: CheckpointStore, state: TrainerState, *, is_newest: bool) -> None:
    """Makes the checkpoint that a run goes on from the latest, as if it had just been saved."""
    if not is_newest:
        store.go_back_to(state.progress.step)
    store.repair_links(latest=state.progress.step, best=state.best["step"] if state.best else None)


def _end_what_a_kill_cut_off(run: RunFolder, recipe: TrainingRecipe, state: TrainerState, observer: Observer) -> None:
    """Does what follows the rename of a run's last checkpoint, where a kill may have come in between."""
    if not run.manifest.state["final"]:
        _take_up(_open_store(run, recipe, observer), state, is_newest=True)
        run.close(final=True)


@contextmanager
def process_ready(recipe: TrainingRecipe, device: str) -> Iterator[tuple[Ranks, torch.device]]:
    """The process set up as the recipe asks, joined with the other ranks.

    DistributedDataParallel has to be gone before the process group is taken apart, or the process may hang for good as
    it leaves: the caller's own frame must not hold an engine, and what an error's frames hold is let go here.
    """
    if recipe.run.deterministic:
        # cuBLAS reads this when CUDA starts, so it has to be set before the first call that touches a device.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with joined_ranks(device, recipe.distributed.timeout_seconds) as (ranks, place):
        if place.type == "cpu":
            keep_freed_memory()
        was_deterministic = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(recipe.run.deterministic or was_deterministic)
        try:
            yield ranks, place
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            torch.use_deterministic_algorithms(was_deterministic)


class Session:
    """One process's part in training a run, between the recipe and the result."""

    def __init__(
        self,
        recipe: TrainingRecipe,
        device: torch.device,
        ranks: Ranks,
        observer: Observer,
        stop: StopRequests,
        predicted_peak_bytes: int | None,
    ) -> None:
        self.recipe = recipe
        self.device = device
        self.ranks = ranks
        self._observer = observer
        self._stop = stop
        self._predicted_peak_bytes = predicted_peak_bytes
        self._started = time.perf_counter()
        self.corpus = open_data(recipe, observer)
        self.task = make_task(recipe, self.corpus)
        self.task.check()
        self.precision = choose_precision(recipe.run.precision, device, force=recipe.run.force_precision)
        if self.precision.reason is not None:
            observer.notice(f"precision: computing in {self.precision.effective}; {self.precision.reason}")
        self.model: nn.Module = self.task.build_model().to(device)

    @property
    def tokenizer(self) -> bytes | None:
        """The corpus's tokenizer.json, which each checkpoint gets a copy of; None where it has none."""
        path = self.corpus.tokenizer_path
        return None if path is None else path.read_bytes()

    def warm_start(self, source: Path) -> list[Parent]:
        """Gives the model the weights of an earlier checkpoint; see `load_weights`."""
        return load_weights(self.model, source, config=self.task.config(), observer=self._observer)

    def corpus_parent(self, run_path: Path) -> Parent:
        """The corpus as the run's manifest names it."""
        return Parent("corpus", self.corpus.digest, os.path.relpath(self.corpus.path, run_path))

    def record(self) -> dict[str, Any]:
        """What the run's manifest records about how it is made."""
        recipe = self.recipe
        return {
            "kind": self.task.kind,
            "recipe_digest": recipe_digest(recipe),
            "corpus_digest": self.corpus.digest,
            "seed": recipe.run.seed,
            "precision": precision_record(self.precision),
            "model": model_record(self.model),
            "environment": environment_record(self.device, self.ranks, deterministic=recipe.run.deterministic),
        }

    def check_disk(self, folder: Path) -> None:
        """Warns of a disk that cannot take one more checkpoint: older ones go only when a new one is whole.

        Args:
            folder: where it is to lie; need not be there yet.
        """
        decay = self.recipe.optimizer.average_decay
        trained = trainable_parameters(self.model)
        needed = expected_checkpoint_bytes(model_tensors(self.model), trained, average_decay=decay)
        lacking = missing_bytes(folder, needed)
        if lacking:
            self._observer.warning(
                f"{folder}: a checkpoint takes {needed:,} bytes and the disk has {needed - lacking:,} free; "
                "saving will fail"
            )

    def check_same_corpus(self, run: RunFolder, checkpoint: LoadedCheckpoint | None) -> None:
        """Refuses to go on with other data.

        Raises:
            RecipeError: the corpus or its tokenizer is not the one that the run was started with.
        """
        recorded = run.manifest.record.get("corpus_digest")
        if recorded != self.corpus.digest:
            raise RecipeError(
                f"the corpus {self.corpus.path} has digest {self.corpus.digest}, the run was started with {recorded}",
                hint="bring the original corpus back, or start a new run",
            )
        if checkpoint is not None and checkpoint.tokenizer != self.tokenizer:
            raise RecipeError(
                f"{self.corpus.tokenizer_path} is not the tokenizer that the run's checkpoints were trained with",
                hint=f"strata verify-manifest {self.corpus.path} tells what changed; bring the original back",
            )

    def engine(self, run: RunFolder, store: CheckpointStore | None, observer: Observer) -> Engine:
        """What trains the model; `store` is None where no checkpoint is to be written."""
        return Engine(
            self.task,
            self.model,
            self.recipe,
            run,
            store,
            device=self.device,
            ranks=self.ranks,
            precision=self.precision,
            observer=observer,
            stop=self._stop,
            tokenizer=self.tokenizer,
        )

    # Only the frames of the session's own methods hold an engine: see `process_ready`.

    def start(self, run: RunFolder) -> dict[str, Any]:
        """Trains from the start, and closes the run's records."""
        return self._train(self._engine_at(run, None), resumed=False)

    def go_on(
        self,
        run: RunFolder,
        checkpoint: LoadedCheckpoint | None,
        changes: list[tuple[str, Any, Any]],
        *,
        is_newest: bool,
    ) -> dict[str, Any]:
        """Trains on from a checkpoint, or from the start where there is none, and closes the run's records.

        Args:
            run: the run's folder.
            checkpoint: of this run.
            changes: what this resume changes, as `RunFolder.recipe_with` gives it.
            is_newest: whether no later checkpoint has to go.

        Raises:
            DataError: the checkpoint does not fit the model; nothing in the run has changed then.
        """
        engine = self._engine_at(run, checkpoint)
        if self.ranks.is_first:
            state = engine.state
            if checkpoint is not None:
                _take_up(_open_store(run, self.recipe, self._observer), state, is_newest=is_newest)
            environment = self.record()["environment"]
            run.go_on(state.progress.step, changes, environment, evaluation_pending=state.evaluation_pending)
            self.check_disk(run.checkpoints)
        self.ranks.barrier()
        return self._train(engine, resumed=checkpoint is not None)

    def _engine_at(self, run: RunFolder, checkpoint: LoadedCheckpoint | None) -> Engine:
        store = _open_store(run, self.recipe, self._observer) if self.ranks.is_first else None
        engine = self.engine(run, store, self._observer)
        if checkpoint is not None:
            engine.restore(checkpoint)
        return engine

    def _train(self, engine: Engine, *, resumed: bool) -> dict[str, Any]:
        run = engine.run
        first_step = engine.state.progress.step
        first_tokens = engine.state.progress.tokens
        if self.ranks.is_first:
            run.event("resumed" if resumed else "started", first_step)
        self._observer.training_started(self._facts(run, first_step))
        training_since = time.perf_counter()
        reason = engine.train()
        seconds = time.perf_counter() - training_since
        memory = {"peak_memory_bytes": peak_bytes(self.device), "predicted_peak_bytes": self._predicted_peak_bytes}
        if self.ranks.is_first:
            step = engine.state.progress.step
            run.event("memory", step, timing=memory)
            if reason != PREEMPTED:
                run.event("finished" if reason == FINISHED else "stopped early", step)
            run.close(final=reason != PREEMPTED)
        return {
            **_result(run, engine.state, reason),
            "seconds": time.perf_counter() - self._started,
            "tokens_per_second": (engine.state.progress.tokens - first_tokens) / max(seconds, 1e-9),
            **memory,
        }

    def _facts(self, run: RunFolder, first_step: int) -> dict[str, Any]:
        batch = self.recipe.batch
        return {
            "run_dir": str(run.path),
            "first_step": first_step,
            "max_steps": self.recipe.run.max_steps,
            "device": str(self.device),
            "ranks": self.ranks.world_size,
            "precision": self.precision.effective,
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "batch": f"{batch.batch_size} = {batch.batch_size // batch.micro_batch_size} x {batch.micro_batch_size}",
            **self.task.facts(),
        }


def _open_store(run: RunFolder, recipe: TrainingRecipe, observer: Observer) -> CheckpointStore:
    return CheckpointStore(
        run.checkpoints,
        keep_last=recipe.checkpoint.keep_last,
        keep_every=recipe.checkpoint.keep_every,
        observer=observer,
        on_saved=run.note_saved,
        on_removing=lambda step, path: run.drop_checkpoint(path),
    )


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


def _result(run: RunFolder, state: TrainerState, reason: str) -> dict[str, Any]:
    return {
        "run_dir": str(run.path),
        "steps": state.progress.step,
        "first_loss": state.first_loss,
        "final_loss": state.last_loss,
        "best": state.best,
        "tokens_seen": state.progress.tokens,
        "stopped_because": reason,
        "checkpoint": str(run.checkpoints / f"step-{state.progress.step:08d}"),
    }

"""One process's part in training a run: made ready with the other ranks, from a recipe to a result."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from strata_core.errors import RecipeError
from strata_core.launch.warm_start import load_weights
from strata_core.manifest import Parent
from strata_core.observer import Observer
from strata_core.recipes.tables import TrainingRecipe
from strata_core.recipes.writing import recipe_digest
from strata_core.tasks.data import open_data
from strata_core.tasks.registry import make_task
from strata_core.training.allocator import keep_freed_memory
from strata_core.training.checkpoint import (
    CheckpointStore,
    LoadedCheckpoint,
    expected_checkpoint_bytes,
    missing_bytes,
    model_tensors,
)
from strata_core.training.distributed import Ranks, joined_ranks
from strata_core.training.engine import FINISHED, PREEMPTED, Engine
from strata_core.training.memory import peak_bytes
from strata_core.training.optimizer import trainable_parameters
from strata_core.training.precision import choose_precision
from strata_core.training.progress import TrainerState
from strata_core.training.run.folder import RunFolder
from strata_core.training.run.provenance import environment_record, model_record, precision_record
from strata_core.training.stop import StopRequests


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
        return load_weights(
            self.model, source, config=self.task.config(), tokenizer=self.tokenizer, observer=self._observer
        )

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
                take_up(open_store(run, self.recipe, self._observer), state, is_newest=is_newest)
            environment = self.record()["environment"]
            run.go_on(state.progress.step, changes, environment, evaluation_pending=state.evaluation_pending)
            self.check_disk(run.checkpoints)
        self.ranks.barrier()
        return self._train(engine, resumed=checkpoint is not None)

    def _engine_at(self, run: RunFolder, checkpoint: LoadedCheckpoint | None) -> Engine:
        store = open_store(run, self.recipe, self._observer) if self.ranks.is_first else None
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
            **run_result(run, engine.state, reason),
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


def open_store(run: RunFolder, recipe: TrainingRecipe, observer: Observer) -> CheckpointStore:
    """The run's checkpoints for writing; clears what a kill left half done among them."""
    return CheckpointStore(
        run.checkpoints,
        keep_last=recipe.checkpoint.keep_last,
        keep_every=recipe.checkpoint.keep_every,
        observer=observer,
        on_saved=run.note_saved,
        on_removing=lambda step, path: run.drop_checkpoint(path),
    )


def take_up(store: CheckpointStore, state: TrainerState, *, is_newest: bool) -> None:
    """Makes the checkpoint that a run goes on from the latest, as if it had just been saved."""
    if not is_newest:
        store.go_back_to(state.progress.step)
    store.repair_links(latest=state.progress.step, best=state.best["step"] if state.best else None)


def run_result(run: RunFolder, state: TrainerState, reason: str) -> dict[str, Any]:
    """How a run ended, as the commands print it."""
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

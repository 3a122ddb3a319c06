"""Proof by replay: trains aside from one checkpoint of a run to the next, and compares with what the run claims."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from strata_core.errors import DataError, DivergedError, RecipeError, UsageError
from strata_core.launch import worker
from strata_core.launch.session import Session, process_ready
from strata_core.launch.warm_start import load_weights
from strata_core.manifest import verify
from strata_core.observer import SILENT, Observer
from strata_core.recipes.writing import dump_recipe
from strata_core.replay.claim import Claim, read_claim
from strata_core.replay.sessions import environment_differences
from strata_core.replay.state_comparison import (
    Difference,
    record_differences,
    tensor_differences,
    value_differences,
)
from strata_core.training.checkpoint import LoadedCheckpoint
from strata_core.training.checkpoint.reading import (
    CONFIG_FILE,
    MODEL_FILE,
    OPTIMIZER_FILE,
    TOKENIZER_FILE,
    TRAINER_FILE,
)
from strata_core.training.engine import Engine
from strata_core.training.run.folder import RunFolder
from strata_core.training.stop import StopRequests

ROUNDING_TOLERANCE = 0.01
"""Where a run's sums were taken in another order than here: by which part of its way a tensor may be elsewhere.

Measured on two ranks and one: 1e-6 after 4 steps, 8e-6 after 50."""


@dataclass(frozen=True)
class Replay:
    """The outcome of a replay.

    Attributes:
        from_step: where it began; 0 is the run's own start.
        to_step: the step whose checkpoint it is compared with.
        device, threads: what it computed on.
        tolerance: None where every bit counts, else the bound on `Difference.relative`.
        tensors: how many tensors the claimed checkpoint has.
        differences: what differs by more than that; tensors first, in the model's order.
        largest_relative: of the differences within the tolerance; 0.0 without any.
        environment: recorded and present value of what differs between the two environments, by name.
        notes: one line each about what a reader should know.
    """

    from_step: int
    to_step: int
    device: str
    threads: int
    tolerance: float | None
    tensors: int
    differences: tuple[Difference, ...]
    largest_relative: float
    environment: Mapping[str, tuple[Any, Any]]
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def first_differing_step(self) -> int | None:
        """The first step after which something differs, as far as the run logged its steps."""
        return min((difference.step for difference in self.differences), default=None)

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return {
            "from_step": self.from_step,
            "to_step": self.to_step,
            "equal": self.equal,
            "comparison": "bit for bit" if self.tolerance is None else "within a tolerance",
            "tolerance": self.tolerance,
            "largest_relative_difference": self.largest_relative,
            "tensors": self.tensors,
            "first_difference": self.differences[0].to_json() if self.differences else None,
            "first_differing_step": self.first_differing_step,
            "differences": len(self.differences),
            "device": self.device,
            "threads": self.threads,
            "environment": {
                name: {"recorded": recorded, "present": present}
                for name, (recorded, present) in self.environment.items()
            },
            "notes": list(self.notes),
        }


def replay(run_dir: Path, *, step: int | None = None, observer: Observer = SILENT) -> Replay:
    """Trains again up to one checkpoint of a run, in a temporary folder and in this process; the run is only read.

    It begins at the checkpoint before, or, where that is the first one kept, at the run's initial weights.

    Args:
        run_dir: the run.
        step: the step of the checkpoint to arrive at; None: the last one.
        observer: shown the progress.

    Returns:
        What differs; see `Replay`.

    Raises:
        UsageError: no such run, or it has no checkpoint of that step.
        DataError: it cannot be replayed here: corpus, warm start or device are missing, or a file is damaged.
        StorageError: the temporary folder took no more.
    """
    run = RunFolder.open(run_dir)
    if worker.is_worker():
        raise UsageError("a replay is one process, and this one was started as a rank of several")
    claim = read_claim(run, step)
    with _as_data_error(run), _threads(claim.environment["threads"]):
        recipe = run.with_corpus_found(claim.sessions[0].recipe)
        with process_ready(recipe, claim.environment["device"]) as (ranks, device):
            stop = StopRequests()
            session = Session(recipe, device, ranks, observer, stop, None)
            _check_corpus(run, session, observer)
            notes = [*_load_initial_weights(run, session, claim), *_notes(claim)]
            with tempfile.TemporaryDirectory(prefix="strata-replay-") as folder:
                aside = RunFolder.create(Path(folder) / "run", dump_recipe(recipe), {}, ())
                engine = session.engine(aside, None, _StepProgress(observer, claim.from_step))
                differences = _differences(run, engine, stop, claim, observer)
            present = session.record()["environment"]
            return _outcome(claim, differences, present, notes)


@contextmanager
def _as_data_error(run: RunFolder) -> Iterator[None]:
    """What would be a wrong recipe or command in a new run is here a fact about the run."""
    try:
        yield
    except (UsageError, RecipeError) as error:
        raise DataError(f"{run.path} cannot be replayed here: {error.message}", hint=error.hint) from error


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Computes with so many threads, since the order of sums on a CPU depends on their number."""
    present = torch.get_num_threads()
    torch.set_num_threads(max(count, 1))
    try:
        yield
    finally:
        torch.set_num_threads(present)


def _check_corpus(run: RunFolder, session: Session, observer: Observer) -> None:
    """Only with the very tokens can training come out the same."""
    session.check_same_corpus(run, checkpoint=None)
    report = verify(session.corpus.path, observer=observer)
    if not report.ok:
        raise DataError(
            f"the corpus {session.corpus.path} is not what its manifest says: "
            f"{report.faults[0].path}: {report.faults[0].what}",
            hint=f"strata verify-manifest {session.corpus.path} lists every fault; bring the original back",
        )


def _load_initial_weights(run: RunFolder, session: Session, claim: Claim) -> list[str]:
    """Loads what a run with a warm start began with; returns a note where nothing vouches for it."""
    source = session.recipe.run.warm_start
    if claim.before is not None or source is None:
        return []
    recorded = next((parent for parent in run.manifest.parents if parent.describes != "corpus"), None)
    if recorded is None:
        load_weights(session.model, source)
        return [f"the run began with the weights in {source}, of which it recorded no digest"]
    place = run.path / recorded.path if recorded.path is not None else source
    found = load_weights(session.model, place if place.exists() else source)
    if [parent.digest for parent in found] != [recorded.digest]:
        raise DataError(
            f"{source} is not the checkpoint that the run began with, which has digest {recorded.digest}",
            hint="bring that checkpoint back to where it was",
        )
    return []


def _notes(claim: Claim) -> Iterator[str]:
    if not claim.is_exact:
        how = f"were summed over {claim.ranks} ranks" if claim.ranks > 1 else "came from kernels that may vary"
        yield f"gradients {how}: a tensor may be off by {ROUNDING_TOLERANCE:.0%} of the way it goes in these steps"
    environments = [session.environment for session in claim.sessions]
    if any(environment_differences(environment, claim.environment) for environment in environments):
        yield f"{len(environments)} sessions in unlike environments trained these steps; replayed as in the last one"


class _StepProgress(Observer):
    """Tells an observer how far the replay is, and nothing of what a run would tell."""

    def __init__(self, observer: Observer, from_step: int) -> None:
        self._observer = observer
        self._from_step = from_step

    def step_logged(self, record: Mapping[str, Any]) -> None:
        self._observer.stage_advanced(record["step"] - self._from_step)


def _differences(
    run: RunFolder, engine: Engine, stop: StopRequests, claim: Claim, observer: Observer
) -> list[Difference]:
    """Trains, and lists whatever came out otherwise than claimed."""
    if claim.before is None:
        state = engine.checkpoint_state()
        start = {name: tensor.cpu().clone() for name, tensor in {**state.model, **state.optimizer}.items()}
    else:
        _restore(engine, claim.before)
        start = {**claim.before.model, **claim.before.optimizer}
    observer.stage_started("replay", claim.to_step - claim.from_step, "steps")
    try:
        _train(engine, stop, claim)
    except DivergedError as error:
        return [Difference(claim.to_step, TRAINER_FILE, "progress", False, f"never gets there: {error.message}")]
    finally:
        observer.stage_finished()
    found = _state_differences(engine, claim, start)
    steps = range(claim.from_step + 1, claim.to_step + 1)
    for claimed, replayed in ((run.metrics, engine.run.metrics), (run.evaluations, engine.run.evaluations)):
        found += record_differences(claimed.path.name, claimed.read(), replayed.read(), steps)
    return found


def _restore(engine: Engine, checkpoint: LoadedCheckpoint) -> None:
    try:
        engine.restore(checkpoint)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{checkpoint.path / TRAINER_FILE} cannot be taken over: {error}") from error


def _train(engine: Engine, stop: StopRequests, claim: Claim) -> None:
    """Goes from the one checkpoint to the other as the run did, session by session."""
    ends = [*(session.first_step for session in claim.sessions[1:]), claim.to_step]
    for session, end in zip(claim.sessions, ends, strict=True):
        # Each step is logged, to be compared with whichever of them the run has logged.
        run_table = session.recipe.run.model_copy(update={"log_every": 1})
        engine.recipe = session.recipe.model_copy(update={"run": run_table})
        if end == claim.to_step and claim.after.trainer.get("evaluation_pending"):
            # A request to stop cut off the evaluation of this step.
            engine.train(until_step=end - 1)
            stop.request("the run was stopped here")
        engine.train(until_step=end)


def _state_differences(engine: Engine, claim: Claim, start: Mapping[str, Tensor]) -> list[Difference]:
    """The state trained to against the claimed checkpoint; `start` has the tensors that training began with."""
    step, claimed, state = claim.to_step, claim.after, engine.checkpoint_state()
    found = [
        *tensor_differences(MODEL_FILE, claimed.model, state.model, start, step=step),
        *tensor_differences(OPTIMIZER_FILE, claimed.optimizer, state.optimizer, start, step=step),
        *value_differences(TRAINER_FILE, claimed.trainer, json.loads(json.dumps(state.trainer)), step=step),
        *value_differences(CONFIG_FILE, claimed.config, json.loads(json.dumps(state.config)), step=step),
    ]
    if claimed.tokenizer != state.tokenizer:
        found.append(Difference(step, TOKENIZER_FILE, "", False, "not the tokenizer of the corpus"))
    return found


def _outcome(claim: Claim, differences: list[Difference], present: Mapping[str, Any], notes: list[str]) -> Replay:
    tolerance = None if claim.is_exact else ROUNDING_TOLERANCE
    rounding = [difference.relative or 0.0 for difference in differences if difference.is_within(tolerance)]
    return Replay(
        from_step=claim.from_step,
        to_step=claim.to_step,
        device=present["device"],
        threads=present["threads"],
        tolerance=tolerance,
        tensors=len(claim.after.model) + len(claim.after.optimizer),
        differences=tuple(difference for difference in differences if not difference.is_within(tolerance)),
        largest_relative=max(rounding, default=0.0),
        environment=environment_differences(claim.environment, present),
        notes=tuple(notes),
    )

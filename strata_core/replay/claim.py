"""What a run claims about a stretch of its steps: the states at both ends, and how it got from the one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strata_core.errors import DataError, UsageError
from strata_core.manifest.run_state import parse_state
from strata_core.replay.sessions import TrainingSession, sessions_between
from strata_core.training.checkpoint import LoadedCheckpoint, load_checkpoint
from strata_core.training.checkpoint.folders import step_folder_name, step_of
from strata_core.training.checkpoint.reading import TRAINER_FILE
from strata_core.training.run.folder import RunFolder


@dataclass(frozen=True)
class Claim:
    """A checkpoint, and where it is said to come from.

    Attributes:
        from_step: where the stretch begins; 0 is the run's start.
        before: the checkpoint there; None stands for the initial weights.
        to_step: where it ends.
        after: the checkpoint there.
        sessions: what trained the steps between, in their order.
    """

    from_step: int
    before: LoadedCheckpoint | None
    to_step: int
    after: LoadedCheckpoint
    sessions: Sequence[TrainingSession]

    @property
    def environment(self) -> Mapping[str, Any]:
        """As recorded by the session that made the checkpoint."""
        return self.sessions[-1].environment

    @property
    def ranks(self) -> int:
        """The largest number of ranks that any of the sessions had."""
        return max(session.environment["world_size"] for session in self.sessions)

    @property
    def is_exact(self) -> bool:
        """Whether one process gives the same bits: sums were taken in an order that ranks and kernels do not change."""
        exact_reduction = self.sessions[0].recipe.distributed.exact_reduction
        repeatable_kernels = all(
            session.environment["device"] == "cpu" or session.environment["determinism"]["obtained"]
            for session in self.sessions
        )
        return repeatable_kernels and (exact_reduction or self.ranks == 1)


def read_claim(run: RunFolder, step: int | None) -> Claim:
    """The claim that ends at a step's checkpoint, and begins at the one before or, without any, at the run's start.

    Args:
        run: the run; only read.
        step: the step at its end; None: the last one.

    Raises:
        UsageError: the run lists no checkpoint of that step.
        DataError: it lists none at all, one is not what it recorded, or its records do not tell how it was trained.
    """
    digests = _recorded_digests(run)
    if not digests:
        raise DataError(f"{run.path} has no checkpoint to replay")
    to_step = max(digests) if step is None else step
    if to_step not in digests:
        known = ", ".join(map(str, sorted(digests)))
        raise UsageError(f"{run.path} has no checkpoint of step {to_step}", hint=f"it has steps {known}")
    from_step = max((other for other in digests if other < to_step), default=None)
    return Claim(
        from_step=from_step or 0,
        before=None if from_step is None else _checkpoint(run, from_step, digests[from_step]),
        to_step=to_step,
        after=_checkpoint(run, to_step, digests[to_step]),
        sessions=sessions_between(run, from_step or 0, to_step),
    )


def _recorded_digests(run: RunFolder) -> dict[int, str]:
    """By step, the digest of each checkpoint that the run's manifest lists."""
    state, _ = parse_state(run.manifest.state, source=str(run.path))
    named = {step_of(path.partition("/")[2]): digest for path, digest in state.checkpoints.items()}
    return {step: digest for step, digest in named.items() if step is not None}


def _checkpoint(run: RunFolder, step: int, digest: str) -> LoadedCheckpoint:
    checkpoint = load_checkpoint(run.checkpoints / step_folder_name(step))
    if checkpoint.digest != digest:
        raise DataError(f"{checkpoint.path} is not the checkpoint that the run recorded, which has digest {digest}")
    progress = checkpoint.trainer.get("progress")
    if not isinstance(progress, dict) or progress.get("step") != step:
        raise DataError(f"{checkpoint.path / TRAINER_FILE} is not about step {step}")
    return checkpoint

"""What a person may call a checkpoint of a run; loads no torch, so that a wrong name is told at once."""

from __future__ import annotations

from strata_core.errors import UsageError

LATEST = "latest"
BEST = "best"


def check_choice(name: str) -> None:
    """Refuses what is not the name of a checkpoint; whether a run has it is another question.

    Raises:
        UsageError: it is neither LATEST nor BEST nor the number of a step.
    """
    if name not in (LATEST, BEST) and not name.isdecimal():
        raise UsageError(
            f"--from {name}: must be {LATEST}, {BEST} or the number of a step",
            hint="the folders in checkpoints of the run have the numbers of its steps",
        )

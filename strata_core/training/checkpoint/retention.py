"""Which checkpoints of a run are kept."""

from __future__ import annotations

from collections.abc import Sequence


def steps_to_remove(
    steps: Sequence[int], *, saved: int, best: int | None, keep_last: int, keep_every: int
) -> list[int]:
    """The steps whose checkpoints are no longer wanted, in ascending order.

    Kept are the one just saved, the best one, the last `keep_last` by number, and those divisible by `keep_every`.

    Args:
        steps: steps that have a checkpoint.
        saved: the step just saved.
        best: the step of the best checkpoint, None where there is none.
        keep_last: how many of the newest to keep; at least 1.
        keep_every: keep each step divisible by it; 0 keeps none for that reason.
    """
    ordered = sorted(steps)
    kept = {saved, best, *ordered[-max(1, keep_last) :]}
    if keep_every > 0:
        kept |= {step for step in ordered if step % keep_every == 0}
    return [step for step in ordered if step not in kept]

"""What can go wrong, as values: one subclass of StrataError for each kind of failure.

An error is worded for the operator: `message` says what is wrong, where, and the value found; `hint` says what to do
about it. `exit_code` is the status the command ends with.
"""

from __future__ import annotations

from collections.abc import Sequence


class StrataError(Exception):
    """A foreseen failure.

    Args:
        message: what is wrong, where (file, line, key), and the value found. One paragraph, no trailing newline.
        problems: one line for each fault, where several are told at once.
        hint: what the reader can do about it, or None when there is nothing to add.
    """

    exit_code = 1

    def __init__(self, message: str, *, problems: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.problems = problems
        self.hint = hint


SHOWN_PROBLEMS = 20
"""How many faults of one kind are told one by one."""


def first_problems(problems: Sequence[object]) -> tuple[str, ...]:
    """Faults as `problems` of an error: the first SHOWN_PROBLEMS, and how many more there are."""
    shown = [str(problem) for problem in problems[:SHOWN_PROBLEMS]]
    more = len(problems) - len(shown)
    return (*shown, f"and {more:,} more") if more else tuple(shown)


class UsageError(StrataError):
    """The command line asks for something that cannot be: a missing path, options that exclude each other."""

    exit_code = 2


class RecipeError(StrataError):
    """A recipe that cannot be run. `problems` has one line for each fault, so that all are seen at once."""

    exit_code = 2


class MemoryFitError(StrataError):
    """The run would need more memory than the device has."""

    exit_code = 3


class VerificationError(StrataError):
    """What was checked is not what its manifest or its format promises, or is not safe to load."""

    exit_code = 4


class DataError(StrataError):
    """Input that cannot be read or makes no sense: a damaged file, a malformed record, half a checkpoint."""

    exit_code = 5


class StorageError(StrataError):
    """The file system refused to take what had to be written: full, read-only, over a size limit."""

    exit_code = 5


class PlaceTakenError(StrataError):
    """The place to write to exists already, or another process holds it."""

    exit_code = 6


class DivergedError(StrataError):
    """Training met non-finite losses or gradients again and again."""

    exit_code = 7


class LostRankError(StrataError):
    """Another rank of the run is gone, or does not answer."""

    def __init__(self, message: str) -> None:
        hint = "logs/rank-N.log of the run has what that rank said; strata resume goes on from the last checkpoint"
        super().__init__(message, hint=hint)


EXIT_PREEMPTED = 75
"""Stopped on request after a checkpoint (sysexits.h EX_TEMPFAIL: try again); `strata resume` goes on from there."""

EXIT_INTERRUPTED = 130
"""Left at once on a second signal or an interrupt outside training (128 + SIGINT)."""

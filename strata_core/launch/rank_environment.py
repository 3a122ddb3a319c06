"""The environment variables that make a process a rank: a whole launch is joined, a part of one is no launch.

Names of variables and their meaning: the manual of torchrun (https://docs.pytorch.org/docs/stable/elastic/run.html).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from strata_core.errors import RecipeError, UsageError

_NEEDED = ("RANK", "WORLD_SIZE")
_NUMBERS = (*_NEEDED, "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")
_MEETING_POINT = ("MASTER_ADDR", "MASTER_PORT")


def leave_out_parts(environment: MutableMapping[str, str]) -> str | None:
    """Removes a rank's variables where they do not say which rank of how many this process is.

    MASTER_ADDR and MASTER_PORT stay: a process that is no rank has no use for them.

    Args:
        environment: the process's environment variables.

    Returns:
        What was left out, for a warning; None where there was nothing.

    Raises:
        UsageError: they say it, and cannot be right, or do not say where the ranks meet.
    """
    found = {name: environment[name] for name in _NUMBERS if name in environment}
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        for name in found:
            del environment[name]
        absent = f"without {' and '.join(missing)} {'they start' if len(found) > 1 else 'it starts'} no ranks"
        return f"{_shown(found)} in the environment is ignored: {absent}, and this process is alone" if found else None
    _check_numbers(environment, found)
    return None


def _check_numbers(environment: Mapping[str, str], found: Mapping[str, str]) -> None:
    for name, value in found.items():
        if not (value.isascii() and value.isdecimal()) or (name.endswith("WORLD_SIZE") and int(value) < 1):
            raise UsageError(f"{name}={value!r} in the environment is no such number", hint=_alone(environment))
    numbers = {name: int(value) for name, value in found.items()}
    world_size = numbers["WORLD_SIZE"]
    local_size = numbers.get("LOCAL_WORLD_SIZE", world_size)
    for names, holds in (
        (_NEEDED, numbers["RANK"] < world_size),
        (("LOCAL_RANK", "LOCAL_WORLD_SIZE"), numbers.get("LOCAL_RANK", 0) < local_size),
        (("LOCAL_WORLD_SIZE", "WORLD_SIZE"), local_size <= world_size),
    ):
        if not holds:
            contradiction = _shown({name: environment[name] for name in names if name in environment})
            raise UsageError(f"{contradiction} in the environment cannot be", hint=_alone(environment))
    absent = [name for name in _MEETING_POINT if name not in environment]
    if world_size > 1 and absent:
        raise UsageError(
            f"{origin(environment)}, and {' and '.join(absent)} {'are' if len(absent) > 1 else 'is'} not set: "
            "the ranks cannot meet",
            hint=f"set what is absent; {_alone(environment)}",
        )


def refuse_second_launch(environment: Mapping[str, str]) -> None:
    """What a launcher of ranks makes sure of: that it is no rank itself.

    Raises:
        UsageError: it is one of several.
    """
    if int(environment.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            f"--nproc, --nnodes and --max-restarts start ranks, and {origin(environment)}",
            hint=f"leave them out where another launcher starts the ranks; {_alone(environment)}",
        )


def explained(error: RecipeError, environment: Mapping[str, str]) -> RecipeError:
    """A refusal of the number of ranks, with where the number comes from and how to be rid of it."""
    hint = "; ".join(filter(None, (error.hint, _alone(environment))))
    return RecipeError(f"{error.message}: {origin(environment)}", problems=error.problems, hint=hint)


def origin(environment: Mapping[str, str]) -> str:
    """Which variables make this process a rank, in words."""
    size = environment["WORLD_SIZE"]
    if _is_slurm_task(environment):
        return f"srun's SLURM_STEP_ID={environment['SLURM_STEP_ID']} makes this process one of {size} ranks"
    shown = _shown({name: environment[name] for name in _NEEDED})
    return f"{shown} in the environment make this process one of {size} ranks"


def _alone(environment: Mapping[str, str]) -> str:
    names = ["SLURM_STEP_ID"] if _is_slurm_task(environment) else [name for name in _NUMBERS if name in environment]
    return f"to train in this process alone: unset {' '.join(names)}"


def _is_slurm_task(environment: Mapping[str, str]) -> bool:
    return "SLURM_STEP_ID" in environment and environment.get("SLURM_PROCID") == environment.get("RANK")


def _shown(variables: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in variables.items())

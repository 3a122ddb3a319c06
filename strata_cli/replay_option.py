"""`--replay [STEP]`: an option whose value may be left out, which typer does not offer."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

LAST = "last"
"""What `--replay` without a step stands for."""

_OPTION = "--replay"


class ReplayCommand(TyperCommand):
    """A command that takes `--replay STEP` and `--replay` alone; typer offers no other place to do so."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_replay_value(args))


def with_replay_value(arguments: list[str]) -> list[str]:
    """The arguments with `LAST` as the value of each `--replay` that no step's number follows."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    completed = []
    for position, argument in enumerate(arguments):
        following = arguments[position + 1 : position + 2] if position + 1 < end else []
        is_bare = argument == _OPTION and position < end and not "".join(following).isdecimal()
        completed.append(f"{_OPTION}={LAST}" if is_bare else argument)
    return completed

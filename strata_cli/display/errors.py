"""Errors as people see them: what is wrong, each problem on a line of its own, what to do."""

from __future__ import annotations

import sys

from strata_cli.display.streams import printable, wants_colour
from strata_core.errors import StrataError

_RED, _YELLOW, _CYAN, _PLAIN = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;36m", "\x1b[0m"


def show_error(error: StrataError) -> None:
    """Writes an error to standard error, each part on one unbroken line, so that paths can be copied."""
    show_line("error", error.message)
    for problem in error.problems:
        print(f"  {printable(problem)}", file=sys.stderr)
    if error.hint:
        show_line("hint", error.hint)


def show_line(label: str, text: str) -> None:
    """Writes `label: text` to standard error."""
    colour = {"error": _RED, "warning": _YELLOW}.get(label, _CYAN)
    shown = f"{colour}{label}:{_PLAIN}" if wants_colour(sys.stderr) else f"{label}:"
    print(f"{shown} {printable(text)}", file=sys.stderr, flush=True)

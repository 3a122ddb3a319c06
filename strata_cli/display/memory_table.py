"""The memory plan as people see it."""

from __future__ import annotations

import sys

from strata_cli.display.figures import bytes_text
from strata_cli.display.output import write_text
from strata_cli.display.plain import write_line
from strata_cli.display.streams import is_live, printable
from strata_cli.display.table import write_pairs
from strata_core.memory_fit import MemoryPlan

_TITLE = "memory of a rank"


def show_before_launch(plan: MemoryPlan) -> None:
    """Writes the plan to standard error: a table on a terminal, one line in a log."""
    if is_live(sys.stderr):
        write_pairs(_TITLE, _rows(plan), sys.stderr)
        return
    parts = ", ".join(f"{name} {size}" for name, size in _parts(plan))
    need, budget = bytes_text(plan.predicted_peak_bytes), bytes_text(plan.budget_bytes)
    write_line(f"memory: a rank needs {need} of {budget} on {plan.device} ({parts})")


def show_below_recipe(plan: MemoryPlan) -> None:
    """Writes the plan to standard output, below a recipe: a table on a terminal, comments of the TOML elsewhere."""
    rows = _rows(plan)
    if is_live(sys.stdout):
        write_pairs(_TITLE, rows)
        return
    width = max(len(name) for name, _ in rows)
    write_text("\n".join(["", f"# {_TITLE}", *(f"#   {name:<{width}}  {printable(value)}" for name, value in rows)]))


def _rows(plan: MemoryPlan) -> list[tuple[str, str]]:
    return [
        *_parts(plan),
        ("predicted peak", bytes_text(plan.predicted_peak_bytes)),
        ("there is", f"{bytes_text(plan.budget_bytes)} on {plan.device}: {'fits' if plan.fits else 'does not fit'}"),
        *([("largest micro-batch", str(plan.largest_micro_batch_size))] if _may_be_cut_anew(plan) else []),
        *(("remedy", f"{remedy.arguments()}: {remedy.text}") for remedy in plan.remedies),
        *(("note", note) for note in plan.notes),
    ]


def _may_be_cut_anew(plan: MemoryPlan) -> bool:
    return plan.changeable is None or "batch.micro_batch_size" in plan.changeable


def _parts(plan: MemoryPlan) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), bytes_text(size)) for name, size in plan.parts.items() if size]

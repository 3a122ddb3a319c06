"""What happens in a run, each thing as one line of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strata_cli.display.figures import bytes_text, count_text, seconds_text, short_count_text

_SHOWN_WITH_STEPS = {"first_step", "max_steps"}
_EVALUATION_SKIPPED = {"step", "best", "timing"}


def facts_line(facts: Mapping[str, Any]) -> str:
    """What a run starts with: "run dir runs/small-1 | device cpu | ..."."""
    shown = [
        f"{name.replace('_', ' ')} {_value_text(value)}"
        for name, value in facts.items()
        if name not in _SHOWN_WITH_STEPS
    ]
    return " | ".join(shown)


def step_figures(record: Mapping[str, Any]) -> list[str]:
    """The figures of a metrics record: loss, learning rate, gradient norm, tokens/s, memory; absent ones left out."""
    timing = record.get("timing", {})
    figures = [f"loss {number_text(record.get('loss'))}", f"lr {number_text(record.get('lr'), '.2e')}"]
    if "grad_norm" in record:
        figures.append(f"norm {number_text(record['grad_norm'], '.2f')}")
    if "tokens_per_second" in timing:
        figures.append(f"{short_count_text(timing['tokens_per_second'])} tokens/s")
    if timing.get("memory_bytes"):
        figures.append(bytes_text(timing["memory_bytes"]))
    return figures


def evaluation_line(record: Mapping[str, Any]) -> str:
    """An evaluation: "evaluation at step 50: loss 4.3210, bits per byte 1.9234 (best so far)"."""
    figures = [
        f"{name.replace('_', ' ')} {number_text(value)}"
        for name, value in record.items()
        if name not in _EVALUATION_SKIPPED and not isinstance(value, (dict, list))
    ]
    best = " (best so far)" if record.get("best") else ""
    return f"evaluation at step {record.get('step')}: {', '.join(figures)}{best}"


def stage_line(name: str, done: int, total: int | None, unit: str, seconds: float) -> str:
    """How far a stage is: "hashing: 1.0 GiB of 2.0 GiB, 50 %, about 8.0 s left"."""
    if not total:
        return f"{name}: {amount_text(done, unit)}"
    left = f", about {seconds_text(seconds * (total - done) / done)} left" if 0 < done < total and seconds >= 1 else ""
    return f"{name}: {amount_text(done, unit)} of {amount_text(total, unit)}, {100 * done // total} %{left}"


def amount_text(count: int, unit: str) -> str:
    """So many of a unit."""
    return bytes_text(count) if unit == "bytes" else f"{count_text(count)} {unit}"


def number_text(value: Any, form: str = ".4f") -> str:
    """A figure in a fixed form; None, which stands for NaN and infinities in records, as "not finite"."""
    return "not finite" if value is None else format(value, form)


def _value_text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)

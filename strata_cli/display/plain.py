"""Progress without a terminal: whole lines on standard error, one a log step, nothing written over."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from strata_cli.display.errors import show_line
from strata_cli.display.figures import seconds_text
from strata_cli.display.lines import amount_text, evaluation_line, facts_line, stage_line, step_figures
from strata_cli.display.remaining import RemainingTime
from strata_cli.display.streams import printable
from strata_core.observer import Observer

_SECONDS_BETWEEN_STAGE_LINES = 10.0


class PlainObserver(Observer):
    """Writes a line for each thing that happens."""

    def __init__(self) -> None:
        self._remaining = RemainingTime()
        self._stage: tuple[str, int | None, str] = ("", None, "")
        self._stage_began = self._stage_shown = 0.0
        self._stage_done = 0

    def notice(self, text: str) -> None:
        write_line(text)

    def warning(self, text: str) -> None:
        show_line("warning", text)

    def stage_started(self, name: str, total: int | None, unit: str) -> None:
        self._stage = (name, total, unit)
        self._stage_began = self._stage_shown = time.monotonic()
        self._stage_done = 0

    def stage_advanced(self, done: int, detail: str = "") -> None:
        self._stage_done = done
        now = time.monotonic()
        if now - self._stage_shown >= _SECONDS_BETWEEN_STAGE_LINES:
            self._stage_shown = now
            name, total, unit = self._stage
            write_line(stage_line(name, done, total, unit, now - self._stage_began) + (f" {detail}" if detail else ""))

    def stage_finished(self) -> None:
        name, _, unit = self._stage
        seconds = time.monotonic() - self._stage_began
        write_line(f"{name}: done, {amount_text(self._stage_done, unit)} in {seconds_text(seconds)}")

    def training_started(self, facts: Mapping[str, Any]) -> None:
        self._remaining.start(facts)
        write_line(facts_line(facts))

    def step_logged(self, record: Mapping[str, Any]) -> None:
        parts = [self._remaining.step_text(record), *step_figures(record)]
        left = self._remaining.after(record)
        write_line("  ".join([*parts, f"{seconds_text(left)} left"] if left else parts))

    def evaluated(self, record: Mapping[str, Any]) -> None:
        write_line(evaluation_line(record))

    def checkpoint_saved(self, step: int, path: str) -> None:
        write_line(f"saved {path}")


class QuietObserver(Observer):
    """Writes warnings only."""

    def warning(self, text: str) -> None:
        show_line("warning", text)


def write_line(text: str) -> None:
    """Writes one line to standard error."""
    print(printable(text), file=sys.stderr, flush=True)

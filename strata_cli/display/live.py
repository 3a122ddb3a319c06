"""Progress on a terminal: a bar that is written over, and lines above it for what stays."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from strata_cli.display.figures import seconds_text
from strata_cli.display.lines import amount_text, evaluation_line, facts_line, step_figures
from strata_cli.display.remaining import RemainingTime
from strata_cli.display.streams import printable, wants_colour
from strata_core.observer import Observer

_SECONDS_BETWEEN_REFRESHES = 0.2
_COLUMNS_FOR_A_BAR = 100


class LiveObserver(Observer):
    """Shows stages and training as bars. Use as a context manager, so that the terminal is left in order."""

    def __init__(self) -> None:
        self._console = Console(
            file=sys.stderr, no_color=not wants_colour(sys.stderr), markup=False, highlight=False, emoji=False
        )
        self._is_wide = self._console.width >= _COLUMNS_FOR_A_BAR
        # Refreshed when something is reported: a thread of its own would take the interpreter from training.
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            *([BarColumn(bar_width=16)] if self._is_wide else []),
            TextColumn("{task.fields[figures]}", markup=False),
            console=self._console,
            auto_refresh=False,
        )
        self._remaining = RemainingTime()
        self._stage: TaskID | None = None
        self._stage_unit = ""
        self._training: TaskID | None = None
        self._refreshed = 0.0

    def __enter__(self) -> LiveObserver:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def notice(self, text: str) -> None:
        self._print(text)

    def warning(self, text: str) -> None:
        self._print(f"warning: {text}", style="bold yellow")

    def stage_started(self, name: str, total: int | None, unit: str) -> None:
        self._stage_unit = unit
        self._stage = self._progress.add_task(printable(name), total=total, figures="")
        self._progress.refresh()

    def stage_advanced(self, done: int, detail: str = "") -> None:
        if self._stage is None:
            return
        task = self._progress.tasks[self._progress.task_ids.index(self._stage)]
        elapsed = task.elapsed or 0.0
        left = ""
        if task.total and 0 < done < task.total and elapsed >= 1:
            left = f"  {seconds_text(elapsed * (task.total - done) / done)} left"
        figures = f"{amount_text(done, self._stage_unit)}{left}  {printable(detail)}".rstrip()
        self._update(self._stage, done, figures)

    def stage_finished(self) -> None:
        if self._stage is not None:
            self._progress.remove_task(self._stage)
            self._stage = None
            self._progress.refresh()

    def training_started(self, facts: Mapping[str, Any]) -> None:
        self._remaining.start(facts)
        self._print(facts_line(facts))
        self._training = self._progress.add_task("training", total=self._remaining.max_steps, figures="")
        self._update(self._training, facts.get("first_step") or 0, "")

    def step_logged(self, record: Mapping[str, Any]) -> None:
        if self._training is None:
            return
        left = self._remaining.after(record)
        shown = record if self._is_wide else {name: value for name, value in record.items() if name != "grad_norm"}
        figures = [*step_figures(shown), *([f"{seconds_text(left)} left"] if left else [])]
        self._progress.update(self._training, description=self._remaining.step_text(record))
        self._update(self._training, record["step"], "  ".join(figures), last=left is None)

    def evaluated(self, record: Mapping[str, Any]) -> None:
        self._print(evaluation_line(record))

    def checkpoint_saved(self, step: int, path: str) -> None:
        self._print(f"saved {path}", style="dim")

    def _update(self, task: TaskID, done: int, figures: str, *, last: bool = False) -> None:
        self._progress.update(task, completed=done, figures=figures)
        now = time.monotonic()
        if last or now - self._refreshed >= _SECONDS_BETWEEN_REFRESHES:
            self._refreshed = now
            self._progress.refresh()

    def _print(self, text: str, style: str | None = None) -> None:
        self._console.print(printable(text), style=style, soft_wrap=True)

"""How the library tells a front end what is going on: it prints nothing itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any


class Observer:
    """Receives what happens; every method does nothing, and a front end overrides those it shows.

    Methods are called from the thread that does the work, at most a few times a second for progress.
    """

    def notice(self, text: str) -> None:
        """One line a person should know, no cause for worry."""

    def warning(self, text: str) -> None:
        """One line about something that went another way than asked."""

    def stage_started(self, name: str, total: int | None, unit: str) -> None:
        """Long work begins. `total` is in `unit`s ("bytes", "documents", "steps", ...), None where unknown."""

    def stage_advanced(self, done: int, detail: str = "") -> None:
        """`done` units of the current stage are finished, counted from its start."""

    def stage_finished(self) -> None:
        """The current stage is over."""

    def training_started(self, facts: Mapping[str, Any]) -> None:
        """A run starts or goes on. `facts` has what a person wants to see first (device, parameters, windows, ...)."""

    def step_logged(self, record: Mapping[str, Any]) -> None:
        """A record was added to metrics.jsonl."""

    def evaluated(self, record: Mapping[str, Any]) -> None:
        """A record was added to evaluations.jsonl."""

    def checkpoint_saved(self, step: int, path: str) -> None:
        """A checkpoint is whole on disk."""


class SlowStage:
    """A stage that is shown only once its work has taken a few seconds; for work that is often over at once.

    Args:
        observer: told of the stage.
        name, unit: as for `Observer.stage_started`.
    """

    seconds_before_shown = 5.0

    def __init__(self, observer: Observer, name: str, unit: str) -> None:
        self._observer = observer
        self._name = name
        self._unit = unit
        self._began = time.monotonic()
        self._shown = False

    def advance(self, done: int, total: int) -> None:
        """`done` of `total` units are finished."""
        if not self._shown and time.monotonic() - self._began > self.seconds_before_shown:
            self._observer.stage_started(self._name, total, self._unit)
            self._shown = True
        if self._shown:
            self._observer.stage_advanced(done)
            if done == total:
                self._observer.stage_finished()


SILENT = Observer()
"""An observer that shows nothing."""

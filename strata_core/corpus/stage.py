"""Progress of one stage, reported at most a few times a second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from strata_core.observer import Observer

_SECONDS_BETWEEN_REPORTS = 0.25


class Stage:
    """Counts what is done of a stage and tells an observer now and then."""

    def __init__(self, observer: Observer) -> None:
        self.done = 0
        self._observer = observer
        self._reported = time.monotonic()

    def add(self, amount: int) -> None:
        """Some more is done."""
        self.reach(self.done + amount)

    def reach(self, done: int, detail: str = "") -> None:
        """So much is done since the stage began."""
        self.done = done
        now = time.monotonic()
        if now - self._reported >= _SECONDS_BETWEEN_REPORTS:
            self._reported = now
            self._observer.stage_advanced(done, detail)


@contextmanager
def shown_stage(observer: Observer, name: str, total_bytes: int | None) -> Iterator[Stage]:
    """A stage that is finished when the block ends without an error."""
    observer.stage_started(name, total_bytes, "bytes")
    stage = Stage(observer)
    yield stage
    observer.stage_advanced(stage.done)
    observer.stage_finished()

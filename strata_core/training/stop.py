"""Requests to stop a run: by a signal, or by a caller with a reason."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

from strata_core.errors import EXIT_INTERRUPTED

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
CALLER = "a caller's request"
REASONS = (*(each.name for each in SIGNALS), CALLER)
"""What a stop can be due to, in the order of the flags that ranks exchange."""


class StopRequests:
    """Remembers that somebody wants the run to stop; the loop finishes its step, saves, and leaves.

    With `listening`, the first signal is such a request and a second one leaves at once.
    """

    def __init__(self) -> None:
        self._flags = [False] * len(REASONS)
        self._previous: dict[signal.Signals, Any] = {}
        self._caller_reason: str | None = None

    def request(self, reason: str) -> None:
        """Asks for a stop, from any thread; `reason` is recorded in the run's events."""
        self._caller_reason = reason
        self._flags[REASONS.index(CALLER)] = True

    @property
    def requested(self) -> bool:
        """Whether this process was asked to stop."""
        return any(self._flags)

    @property
    def reason(self) -> str | None:
        """Why this process was asked to stop, None if it was not."""
        if not self.requested:
            return None
        reason = REASONS[self._flags.index(True)]
        return self._caller_reason if reason == CALLER else reason

    def flags(self) -> list[float]:
        """1.0 for each reason present, in the order of REASONS."""
        return [float(flag) for flag in self._flags]

    def listen(self) -> None:
        """Takes over the signals; call it from the main thread, before anything slow."""
        for each in SIGNALS:
            self._previous[each] = signal.signal(each, self._on_signal)

    def restore(self) -> None:
        """Gives the signals back to whoever had them."""
        for each, handler in self._previous.items():
            signal.signal(each, handler)
        self._previous.clear()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.requested:
            os._exit(EXIT_INTERRUPTED)
        self._flags[REASONS.index(signal.Signals(number).name)] = True

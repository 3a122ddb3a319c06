"""Requests to stop a run: by a signal, or by a caller with a reason."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

from strata_core.errors import EXIT_INTERRUPTED

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
CALLER = "a caller's request"
REASONS = (*(each.name for each in SIGNALS), CALLER)
"""What a stop can be due to, in the order of the flags that ranks exchange."""

SECONDS_OF_ONE_REQUEST = 1.0
"""Signals so close together are one request: Slurm and service managers signal every process of a job, launchers pass
their own signal on as well, and a process that gets both must still save."""


class StopRequests:
    """Remembers that somebody wants the run to stop; the loop finishes its step, saves, and leaves.

    After `listen`, the first signal is such a request and a later one leaves at once.
    """

    def __init__(self) -> None:
        self._flags = [False] * len(REASONS)
        self._requested_at = 0.0
        self._caller_reason: str | None = None

    def request(self, reason: str) -> None:
        """Asks for a stop, from any thread; `reason` is recorded in the run's events. A signal's name stands for it."""
        if reason in REASONS:
            self._note(reason)
        else:
            self._caller_reason = reason
            self._note(CALLER)

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
        """Takes over the signals, held back so far or not; from the main thread, before anything slow."""
        for each in SIGNALS:
            signal.signal(each, self._on_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def ignore(self) -> None:
        """Ignores the signals from now on: the end is decided, and Python drops handlers while it shuts down."""
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self.requested:
            self._note(signal.Signals(number).name)
        elif time.monotonic() - self._requested_at > SECONDS_OF_ONE_REQUEST:
            os._exit(EXIT_INTERRUPTED)

    def _note(self, name: str) -> None:
        self._requested_at = time.monotonic()
        self._flags[REASONS.index(name)] = True

"""Hands the signals that ask for a stop from a launcher to its ranks."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import psutil

from strata_core.errors import EXIT_INTERRUPTED, EXIT_PREEMPTED
from strata_core.launch.worker import ask_for_stop
from strata_core.training.stop import SECONDS_OF_ONE_REQUEST, SIGNALS, StopRequests


class StopRelay:
    """Takes SIGTERM, SIGUSR1 and SIGINT in a launcher's place, from now until `end`.

    The first one is left in the exchange folder, where each rank looks, however late it started; without ranks there
    is nothing to save and the launcher leaves with exit code 75. A later one kills the ranks and leaves with 130.

    Processes started meanwhile begin with these signals held back, so that none dies of one before it listens. A
    thread does the work: the launcher's main thread can be inside torch for minutes, waiting for other nodes.

    Args:
        exchange: the folder through which launcher and ranks talk.
        stop: what the launcher was asked for before; passed on too.
    """

    def __init__(self, exchange: Path, stop: StopRequests) -> None:
        self._exchange = exchange
        self._asked_at: float | None = None
        if stop.reason is not None:
            self._ask(stop.reason)
        self._reading, self._writing = socket.socketpair()
        self._writing.setblocking(False)
        self._wakeup_descriptor = signal.set_wakeup_fd(self._writing.fileno())
        # Python tells the descriptor of a signal only where the signal has a handler.
        self._handlers = {each: signal.signal(each, lambda number, frame: None) for each in SIGNALS}
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        self._thread = threading.Thread(target=self._relay, name="stop-relay", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Gives the signals back to whoever had them."""
        signal.set_wakeup_fd(self._wakeup_descriptor)
        self._writing.send(b"\0")
        self._thread.join()
        for each, handler in self._handlers.items():
            signal.signal(each, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        self._reading.close()
        self._writing.close()

    def _relay(self) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        while number := self._reading.recv(1)[0]:
            if number not in SIGNALS:
                continue
            ranks = psutil.Process().children()
            if not ranks:
                self._leave(EXIT_PREEMPTED)
            if self._asked_at is None:
                self._ask(signal.Signals(number).name)
            elif time.monotonic() - self._asked_at > SECONDS_OF_ONE_REQUEST:
                for process in ranks:
                    process.kill()
                self._leave(EXIT_INTERRUPTED)

    def _ask(self, reason: str) -> None:
        ask_for_stop(self._exchange, reason)
        self._asked_at = time.monotonic()

    def _leave(self, code: int) -> None:
        shutil.rmtree(self._exchange, ignore_errors=True)
        os._exit(code)

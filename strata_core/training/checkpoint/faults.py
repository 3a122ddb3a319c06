"""Named places where a drill can kill the process, to show that no instant of a save leaves harm behind."""

from __future__ import annotations

import os
import signal
import threading

ENVIRONMENT_NAME = "STRATA_FAULT_POINT"

_passed: dict[str, int] = {}
_lock = threading.Lock()


def fault_point(name: str) -> None:
    """Does nothing, unless the environment's STRATA_FAULT_POINT is `NAME:COUNT`.

    With that, the process kills itself (SIGKILL: nothing is flushed, no handler runs) when the named place is passed
    for the COUNT-th time, counted from 1.
    """
    wanted = os.environ.get(ENVIRONMENT_NAME)
    if wanted is None:
        return
    wanted_name, _, count = wanted.rpartition(":")
    if wanted_name != name:
        return
    with _lock:
        _passed[name] = _passed.get(name, 0) + 1
        if _passed[name] == int(count):
            os.kill(os.getpid(), signal.SIGKILL)

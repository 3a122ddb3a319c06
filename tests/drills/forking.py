"""Runs in child processes that start in milliseconds, forked from one that has imported everything and used nothing."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from strata_core.training.stop import SIGNALS

KILLED = -signal.SIGKILL
TICK_SECONDS = 0.002
TELL = signal.SIGUSR2
"""Makes a child say on standard error where each of its threads is."""


def start_child(work: Callable[[], object], environment: Mapping[str, str] | None = None) -> int:
    """Starts `work` in a forked child; its exit code is what `work` returns, 0 where that is no number.

    The caller must not have used torch's threads yet: a fork keeps none of them. The child begins with the signals
    that ask for a stop held back, as under a launcher, so that none of them can come before it listens.

    Returns:
        The child's process id.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    child = os.fork()
    if child == 0:
        os.environ.update(environment or {})
        faulthandler.register(TELL, all_threads=True)
        try:
            result = work()
            os._exit(result if isinstance(result, int) else 0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return child


def ticks(limit_seconds: float) -> Iterator[None]:
    """Comes by every two milliseconds, for as long. On a machine that is suspended meanwhile, no time passes."""
    for _ in range(int(limit_seconds / TICK_SECONDS)):
        yield
        time.sleep(TICK_SECONDS)


def wait_for(child: int, limit_seconds: float = 120) -> int | None:
    """The child's exit code, or the number of the signal that killed it, negative.

    None beyond the limit: the child is killed then, after it has said where it was.
    """
    for _ in ticks(limit_seconds):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
    os.kill(child, TELL)
    time.sleep(1.0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def in_child(work: Callable[[], object], environment: Mapping[str, str] | None = None) -> int | None:
    """Runs `work` in a forked child and waits for it; see `start_child` and `wait_for`."""
    return wait_for(start_child(work, environment))


def start_ranks(work: Callable[[], object], world_size: int, environment: Mapping[str, str] | None = None) -> list[int]:
    """Starts `work` as each of several ranks that meet on this machine; returns their process ids by rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world_size)}
    places = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world_size)]
    return [start_child(work, {**meeting, **place, **(environment or {})}) for place in places]


def in_ranks(
    work: Callable[[], object], world_size: int, environment: Mapping[str, str] | None = None
) -> list[int | None]:
    """Runs `work` as several ranks (one: without any others) and returns their exit codes."""
    if world_size == 1:
        return [in_child(work, environment)]
    return [wait_for(child) for child in start_ranks(work, world_size, environment)]


def records_without_timing(path: Path) -> list[dict]:
    """The records of a .jsonl file without what may differ between repetitions."""
    if not path.exists():
        return []
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "timing"} for record in records]


def differences(run: Path, reference: Path, step: int) -> list[str]:
    """What the final state of a run has that is not, byte for byte, the reference's."""
    found = []
    ours, theirs = (folder / "checkpoints" / f"step-{step:08d}" for folder in (run, reference))
    for name in sorted({path.name for folder in (ours, theirs) for path in folder.iterdir()}):
        if not (ours / name).exists() or (ours / name).read_bytes() != (theirs / name).read_bytes():
            found.append(f"{ours.name}/{name}")
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        if records_without_timing(run / name) != records_without_timing(reference / name):
            found.append(name)
    return found

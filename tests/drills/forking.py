"""Runs in child processes that start in milliseconds: forked from one that has imported everything and computed nothing."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path


def in_child(work: Callable[[], object], environment: dict[str, str] | None = None) -> int:
    """Runs `work` in a forked child and waits for it.

    The caller must not have used torch's threads yet: a fork keeps none of them.

    Returns:
        0, the exit code, or the number of the signal that killed it, negative.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.environ.update(environment or {})
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


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


KILLED = -signal.SIGKILL

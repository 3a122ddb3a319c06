"""One attempt at a run in a drill: its processes by name, forked from this one or launched by the command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import torch._inductor  # noqa: F401  (the first optimizer imports it: once here instead of in every child)

from strata_core.errors import EXIT_PREEMPTED, StrataError
from strata_core.launch.starting import resume_run, train
from strata_core.recipes import load_recipe
from strata_core.training.stop import StopRequests
from tests.drills.forking import start_child, start_ranks, ticks, wait_for

LIMIT_SECONDS = 120
SECONDS_TO_VANISH = 30


def train_or_resume(recipe_path: Path, run: Path) -> int:
    """Trains in this process into a new run, or goes on with one that exists; the command's exit code.

    What the process says goes into a file beside the run.
    """
    with open(said_beside(run), "ab") as said:
        os.dup2(said.fileno(), sys.stderr.fileno())
    stop = StopRequests()
    stop.listen()
    try:
        if run.exists():
            result = resume_run(run, device="cpu", stop=stop)
        else:
            result = train(load_recipe(recipe_path, "lm"), run, device="cpu", stop=stop)
    except StrataError as error:
        print(f"rank {os.environ.get('RANK', 0)}: {error.message}", file=sys.stderr)
        return error.exit_code
    return EXIT_PREEMPTED if result["stopped_because"] == "preempted" else 0


@dataclass
class Attempt:
    """A run under way.

    Attributes:
        processes: process ids by name: "rank 0", "rank 1", and "launcher" where there is one.
        launcher: the launcher, None where the ranks were forked from this process.
    """

    processes: dict[str, int]
    launcher: subprocess.Popen[bytes] | None = None
    _seen: list[psutil.Process] = field(default_factory=list)

    def send(self, target: str, signal_number: int) -> bool:
        """Sends a signal to one process, or to all of them where the target is "group"; whether one was there."""
        self.look_again()
        chosen = list(self.processes.values()) if target == "group" else [self.processes.get(target, 0)]
        alive = [pid for pid in chosen if pid and psutil.pid_exists(pid)]
        for pid in alive:
            os.kill(pid, signal_number)
        return bool(alive)

    def wait(self) -> list[int | None]:
        """The exit codes: the launcher's, or each rank's; None for one that hung and had to be killed."""
        if self.launcher is None:
            return [wait_for(pid, LIMIT_SECONDS) for pid in self.processes.values()]
        self.look_again()
        for _ in ticks(LIMIT_SECONDS):
            if self.launcher.poll() is not None:
                return [self.launcher.returncode]
        self.end()
        return [None]

    def end(self) -> None:
        """Kills what is still there of a launched attempt."""
        self.look_again()
        for process in self._seen:
            if _is_alive(process):
                process.kill()
        if self.launcher is not None and self.launcher.poll() is None:
            self.launcher.kill()
            self.launcher.wait()

    def left_over(self) -> list[int]:
        """The ranks that are still there half a minute after their launcher has ended; they are killed then."""
        alive = self._seen
        for _ in ticks(SECONDS_TO_VANISH):
            alive = [process for process in alive if _is_alive(process)]
            if not alive:
                break
        self.end()
        return [process.pid for process in alive]

    def look_again(self) -> None:
        """Notes the ranks that a launcher has started by now, each by its place in the environment."""
        if self.launcher is None or self.launcher.poll() is not None:
            return
        for process in psutil.Process(self.launcher.pid).children():
            try:
                rank = process.environ().get("RANK")
            except psutil.Error:
                continue
            if rank is not None and process not in self._seen:
                self._seen.append(process)
                self.processes[f"rank {rank}"] = process.pid


def fork_attempt(recipe_path: Path, run: Path, ranks: int, environment: Mapping[str, str] | None = None) -> Attempt:
    """The run in processes forked from this one."""

    def work() -> int:
        return train_or_resume(recipe_path, run)

    if ranks == 1:
        return Attempt({"rank 0": start_child(work, environment)})
    children = start_ranks(work, ranks, environment)
    return Attempt({f"rank {rank}": child for rank, child in enumerate(children)})


def launch_attempt(
    recipe_path: Path, run: Path, ranks: int, environment: Mapping[str, str] | None = None, *options: str
) -> Attempt:
    """The run as `strata train-lm` or `strata resume` starts it, one thread a rank; what it says goes into a file
    beside the run."""
    command = [sys.executable, "-m", "strata", *strata_arguments(recipe_path, run), "--nproc", str(ranks), *options]
    with open(said_beside(run), "ab") as said:
        process = subprocess.Popen(
            command,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    return Attempt({"launcher": process.pid}, process)


def strata_arguments(recipe_path: Path, run: Path) -> list[str]:
    """The arguments that train into a new run, or go on with one that exists."""
    start = ["resume", str(run)] if run.exists() else ["train-lm", "--recipe", str(recipe_path), "--out", str(run)]
    return [*start, "--device", "cpu"]


def said_beside(run: Path) -> Path:
    """Where launched attempts at a run write what they say."""
    return run.with_name(f"{run.name}.said")


def wait_for_line(path: Path, lines: int, attempt: Attempt) -> bool:
    """Waits until a record file has so many lines; False where the attempt ends before."""
    for _ in ticks(LIMIT_SECONDS):
        if path.exists() and len(re.findall(rb"\n", path.read_bytes())) >= lines:
            return True
        if attempt.launcher is not None and attempt.launcher.poll() is not None:
            return False
        if attempt.launcher is None and not all(_is_alive(psutil.Process(pid)) for pid in attempt.processes.values()):
            return False
    return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

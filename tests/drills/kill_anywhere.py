"""Kills runs anywhere, resumes them, and compares each with one that was never killed.

Usage: python -m tests.drills.kill_anywhere [--kills 220] [--launched 50] [--seed 1] [--folder DIR]

A kill has a way to run (one process; two ranks; two ranks under `strata ... --nproc 2`), a signal (KILL, TERM), a
target (a rank, the launcher, all of them) and a moment (a named point of a save, a time, a number of logged steps).
After it, what is on disk must be whole, no process may be left, TERM must have lost no step, and the run, resumed on
one rank or two, must end in the same weights, optimizer state, trainer state and metrics, to the bit. One in five is
killed again while it resumes. Ends with a summary line; exit code 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from strata_core.errors import EXIT_PREEMPTED
from strata_core.manifest import verify
from strata_core.training.checkpoint import newest_whole
from tests.drills.attempts import Attempt, fork_attempt, launch_attempt, said_beside, train_or_resume, wait_for_line
from tests.drills.forking import KILLED, differences, in_child, in_ranks, records_without_timing
from tests.strata_core.conftest import TINY, made_up_documents, write_byte_corpus

STEPS = 16
SETTINGS = {
    **dict(setting.split("=") for setting in TINY),
    "run.max_steps": STEPS,
    "checkpoint.every": 2,
    "checkpoint.keep_last": 2,
    "evaluation.every": 5,
    "distributed.exact_reduction": "true",
    "distributed.timeout_seconds": 20,
}
FILES = ("model.safetensors", "optimizer.safetensors", "trainer.json", "config.json", "tokenizer.json", "manifest.json")
POINTS = (
    "partial made",
    *(f"{name} {what}" for name in FILES for what in ("chunk", "written", "synced")),
    "folder synced",
    "renamed",
    "latest pointed",
    "best pointed",
    "removing",
    "removed",
)
SAVES = STEPS // 2 + 1
SECONDS_TO_STOP = 30


@dataclass(frozen=True)
class Kill:
    """One kill. Exactly one of `point`, `delay_seconds` and `lines` says when.

    Attributes:
        way: "process", "ranks" or "launched".
        signal: SIGKILL or SIGTERM.
        target: "rank 0", "rank 1", "launcher" or "group".
        point: "NAME:COUNT", where rank 0 kills itself.
        delay_seconds: after the start.
        lines: steps in metrics.jsonl, counted from the first one of the attempt.
    """

    way: str
    signal: signal.Signals
    target: str
    point: str | None = None
    delay_seconds: float | None = None
    lines: int | None = None


class Drill:
    """Kills runs of one recipe and keeps count of what was found.

    Args:
        folder: where runs are made; what went wrong is left there.
        seed: of the choice of kills.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.kills: Counter[str] = Counter()
        self.missed = 0
        self.problems: dict[str, list[str]] = {}
        self.longest_stop_seconds = 0.0
        self._random = random.Random(seed)
        documents = {"train": made_up_documents(24, seed=1), "val": made_up_documents(6, seed=2)}
        corpus = write_byte_corpus(folder / "corpus", documents)
        self._recipe = folder / "recipe.toml"
        settings = {"corpus.path": repr(str(corpus)), **SETTINGS}
        self._recipe.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self._reference = folder / "undisturbed"
        started = time.monotonic()
        assert in_child(lambda: train_or_resume(self._recipe, self._reference)) == 0
        self._run_seconds = time.monotonic() - started

    def run(self, way: str, kills: int) -> None:
        """Makes that many kills of one kind; attempts that ended before their kill count for nothing."""
        target = self.kills[way] + kills
        case = 0
        while self.kills[way] < target and case < 3 * kills + 10:
            case += 1
            name = f"{way}-{case}"
            found = self._case(self.folder / name, way)
            if found:
                self.problems[name] = found
                print(f"{name}: {'; '.join(found)}", file=sys.stderr, flush=True)
            else:
                shutil.rmtree(self.folder / name, ignore_errors=True)
                said_beside(self.folder / name).unlink(missing_ok=True)

    def _case(self, run: Path, way: str) -> list[str]:
        """A run killed once or twice and then resumed to its end: what was wrong."""
        found = []
        for _ in range(2 if self._random.random() < 0.2 else 1):
            kill = self._draw(way)
            found += [f"{kill}: {problem}" for problem in self._killed(run, kill)]
        if not run.exists():
            return found
        ranks = self._random.choice([1, 2])
        codes = in_ranks(lambda: train_or_resume(self._recipe, run), ranks)
        if codes != [0] * ranks:
            return [*found, f"resumed on {ranks} ranks it ended with {codes}"]
        # A manifest names the machine and the ranks it was started on; that it holds is checked below.
        different = [name for name in differences(run, self._reference, STEPS) if not name.endswith("manifest.json")]
        found += [f"{name} differs" for name in different]
        return found + [f"{fault.path}: {fault.what}" for fault in verify(run).faults]

    def _draw(self, way: str) -> Kill:
        rng = self._random
        targets = {
            "process": ["rank 0"],
            "ranks": ["rank 0", "rank 1", "group"],
            "launched": ["launcher", "launcher", "rank 0", "rank 1", "group"],
        }[way]
        target, moment = rng.choice(targets), rng.random()
        if moment < 0.45:
            return Kill(way, signal.SIGKILL, "rank 0", point=f"{rng.choice(POINTS)}:{rng.randint(1, SAVES)}")
        number = rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGTERM])
        if way == "launched" or moment < 0.6:
            return Kill(way, number, target, lines=rng.randint(0, STEPS - 5))
        return Kill(way, number, target, delay_seconds=rng.uniform(0, self._run_seconds))

    def _killed(self, run: Path, kill: Kill) -> list[str]:
        """Starts or resumes the run and kills it: what was wrong."""
        environment = {"STRATA_FAULT_POINT": kill.point} if kill.point else {}
        start = launch_attempt if kill.way == "launched" else fork_attempt
        attempt = start(self._recipe, run, 1 if kill.way == "process" else 2, environment)
        self._strike(attempt, run, kill)
        asked = time.monotonic()
        codes = attempt.wait()
        left_over = attempt.left_over()
        stop_seconds = time.monotonic() - asked
        if set(codes) == {0}:
            self.missed += 1
            return []
        self.kills.update([kill.way, kill.signal.name, kill.target, "named point" if kill.point else "any time"])
        found = _exit_faults(kill, codes)
        if left_over:
            found.append(f"processes {left_over} were left")
        if kill.point is None:
            self.longest_stop_seconds = max(self.longest_stop_seconds, stop_seconds)
            if kill.signal == signal.SIGTERM and stop_seconds > SECONDS_TO_STOP:
                found.append(f"it took {stop_seconds:.0f} s to stop")
        if run.exists() and in_child(lambda: _check_disk(run, whole_step=EXIT_PREEMPTED in codes)) != 0:
            found.append("what is on disk is not right")
        return found

    def _strike(self, attempt: Attempt, run: Path, kill: Kill) -> None:
        if kill.lines is not None:
            metrics = run / "metrics.jsonl"
            before = len(metrics.read_bytes().splitlines()) if metrics.exists() else 0
            # Until one more is there it may be Python that is starting, and nothing that could be lost.
            if not wait_for_line(metrics, before + 1 + kill.lines, attempt):
                return
            time.sleep(self._random.uniform(0, 0.02))
        elif kill.delay_seconds is not None:
            time.sleep(kill.delay_seconds)
        else:
            return
        attempt.send(kill.target, kill.signal)


def _exit_faults(kill: Kill, codes: list[int | None]) -> list[str]:
    """Exit codes that a kill may not have."""
    if None in codes:
        return ["it hung"]
    if kill.signal == signal.SIGTERM:
        return [] if set(codes) == {EXIT_PREEMPTED} else [f"SIGTERM ended it with {codes}"]
    # Other ranks have lost the one that was killed, or had done their part when it died in the last save.
    allowed = {KILLED, 1, 0} if kill.way == "ranks" else {KILLED, 1} if kill.way == "launched" else {KILLED}
    return [] if set(codes) <= allowed else [f"SIGKILL ended it with {codes}"]


def _check_disk(run: Path, *, whole_step: bool) -> int:
    """Every checkpoint that has its name is whole, and a run that was asked to stop has lost no step."""
    folder = run / "checkpoints"
    saved = [event["step"] for event in _whole_lines(run / "events.jsonl") if event["event"] == "saved"]
    if saved:
        newest, passed_over = newest_whole(folder)
        assert passed_over == [], passed_over
        assert int(newest.name[5:]) >= max(saved), f"{newest.name} is older than what was said to be saved: {saved}"
    if whole_step:
        last_record = _whole_lines(run / "metrics.jsonl")[-1]
        assert newest.name == f"step-{last_record['step']:08d}", f"{newest.name} after {last_record}"
        assert os.readlink(folder / "latest") == newest.name
        assert records_without_timing(run / "events.jsonl")[-2]["event"] == "preempted"
    return 0


def _whole_lines(path: Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(True) if line.endswith("\n")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=220, help="how many in all")
    parser.add_argument("--launched", type=int, default=50, help="how many of them under the command's launcher")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of kills")
    parser.add_argument("--folder", type=Path, default=None, help="where to; default: a temporary folder")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="kill-anywhere-"))
    started = time.monotonic()
    drill = Drill(folder, options.seed)
    forked = options.kills - options.launched
    drill.run("process", forked * 2 // 3)
    drill.run("ranks", forked - forked * 2 // 3)
    drill.run("launched", options.launched)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(drill.kills.items()))
    total = sum(drill.kills[way] for way in ("process", "ranks", "launched"))
    print(
        f"{total} kills ({kinds}), {drill.missed} attempts ended before theirs; {len(drill.problems)} problems; "
        f"longest stop {drill.longest_stop_seconds:.1f} s; seed {options.seed}, {time.monotonic() - started:.0f} s"
    )
    if not drill.problems and options.folder is None:
        shutil.rmtree(folder)
    return 1 if drill.problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Asks runs to stop at chosen moments, resumes them, and compares each with one that was never stopped.

Usage: python -m tests.drills.stop_anywhere FOLDER. FOLDER has recipe.toml: 12 steps, saved and evaluated now and then.
Prints one JSON object: for each case the exit codes, the step of the newest checkpoint, that of the last record, and
what was different in the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strata_core.tasks.language_model.task import LanguageModelTask
from strata_core.training.checkpoint import newest_whole, writing
from tests.drills.attempts import train_or_resume
from tests.drills.forking import differences, in_child, in_ranks, records_without_timing

STEPS = 12
MOMENTS: dict[str, tuple[Any, str, int]] = {
    "step": (LanguageModelTask, "loss_sums", 8),
    "evaluation": (LanguageModelTask, "evaluate", 1),
    "save": (writing, "fault_point", 30),
}
"""What is being called, for the how-manieth time, when the signal comes."""


def before_call(owner: Any, name: str, count: int, action: Callable[[], None]) -> None:
    """Does something in this process just before a function is called for the `count`-th time."""
    original = getattr(owner, name)
    calls = []

    def wrapped(*arguments, **keywords):
        calls.append(1)
        if len(calls) == count:
            action()
        return original(*arguments, **keywords)

    setattr(owner, name, wrapped)


class Stops:
    """Runs of one recipe, each asked to stop once.

    Args:
        folder: has the recipe; the runs are made there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recipe = folder / "recipe.toml"
        self._reference = folder / "undisturbed"
        assert in_child(lambda: train_or_resume(self._recipe, self._reference)) == 0

    def case(
        self, moment: str, ranks: int, targets: tuple[int, ...], signals: tuple[signal.Signals, ...]
    ) -> dict[str, Any]:
        """Sends signals to some ranks at a moment, goes on in one process, and tells what became of the run."""
        case = [moment, str(ranks), *map(str, targets), *(number.name for number in signals)]
        run = self._folder / "-".join(case)

        def stopped() -> int:
            if int(os.environ.get("RANK", "0")) in targets:
                if moment == "start":
                    _send_all(signals)
                else:
                    before_call(*MOMENTS[moment], lambda: _send_all(signals))
            return train_or_resume(self._recipe, run)

        codes = in_ranks(stopped, ranks)
        newest, passed_over = newest_whole(run / "checkpoints")
        last = records_without_timing(run / "metrics.jsonl")[-1]["step"]
        resumed = in_child(lambda: train_or_resume(self._recipe, run))
        different = [name for name in differences(run, self._reference, STEPS) if not name.endswith("manifest.json")]
        return {
            "codes": codes,
            "newest": int(newest.name[5:]),
            "passed_over": passed_over,
            "last": last,
            "resumed": resumed,
            "different": different,
        }


def _send_all(signals: tuple[signal.Signals, ...]) -> None:
    """Signals to this process, far enough apart to be separate requests."""
    for number in signals:
        os.kill(os.getpid(), number)
        if len(signals) > 1:
            time.sleep(1.2)


def main() -> None:
    stops = Stops(Path(sys.argv[1]))
    term, once = (signal.SIGTERM,), {}
    for moment in ("start", "step", "evaluation", "save"):
        once[f"{moment}, alone"] = stops.case(moment, 1, (0,), term)
        once[f"{moment}, rank 0 of 2"] = stops.case(moment, 2, (0,), term)
    for moment in ("start", "step", "evaluation"):
        once[f"{moment}, rank 1 of 2"] = stops.case(moment, 2, (1,), term)
        once[f"{moment}, both ranks"] = stops.case(moment, 2, (0, 1), term)
    for number in (signal.SIGUSR1, signal.SIGINT):
        once[f"step, alone, {number.name}"] = stops.case("step", 1, (0,), (number,))
    twice = {moment: stops.case(moment, 1, (0,), (signal.SIGTERM, signal.SIGTERM)) for moment in ("evaluation", "save")}
    print(json.dumps({"once": once, "twice": twice}))


if __name__ == "__main__":
    main()

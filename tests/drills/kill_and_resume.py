"""Kills a 12-step run after each step's checkpoint, resumes it, and compares it with one that was never killed.

Usage: kill_and_resume.py FOLDER [STEP...]. FOLDER has tiny.toml, a recipe; without steps all of them have their turn.
Prints one JSON object: what differed, by case.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from strata_core.launch import starting as launch
from strata_core.recipes import load_recipe
from tests.drills.forking import KILLED, differences, in_child

STEPS = 12
CADENCE = ("checkpoint.every=1", "checkpoint.keep_last=20", "evaluation.every=5")


def main(folder: Path, kill_steps: Sequence[int] = range(1, STEPS)) -> dict[str, list[str]]:
    """Runs every case; an empty list is a run that came out equal."""

    def train(name: str, *settings: str, stop_after: str | None = None) -> int:
        recipe = load_recipe(folder / "tiny.toml", "lm", [*CADENCE, *settings])
        environment = {"STRATA_FAULT_POINT": stop_after} if stop_after else {}
        return in_child(lambda: launch.train(recipe, folder / name, device="cpu"), environment)

    def resume(name: str, stop_after: str | None = None) -> int:
        environment = {"STRATA_FAULT_POINT": stop_after} if stop_after else {}
        return in_child(lambda: launch.resume_run(folder / name, device="cpu"), environment)

    outcome: dict[str, list[str]] = {}
    reference = folder / "undisturbed"
    assert train(reference.name) == 0
    for kill_step in kill_steps:
        name = f"killed-{kill_step}"
        assert train(name, stop_after=f"latest pointed:{kill_step}") == KILLED
        assert resume(name) == 0
        outcome[name] = differences(folder / name, reference, STEPS)

    assert train("killed-thrice", stop_after="latest pointed:3") == KILLED
    assert resume("killed-thrice", stop_after="latest pointed:4") == KILLED
    assert resume("killed-thrice", stop_after="partial made:2") == KILLED
    assert resume("killed-thrice") == 0
    outcome["killed-thrice"] = differences(folder / "killed-thrice", reference, STEPS)

    averaging = "optimizer.average_decay=0.7"
    assert train("averaged", averaging) == 0
    assert train("averaged-killed", averaging, stop_after="latest pointed:7") == KILLED
    assert resume("averaged-killed") == 0
    outcome["averaged-killed"] = differences(folder / "averaged-killed", folder / "averaged", STEPS)

    assert train("other-cadence", "checkpoint.every=5", "evaluation.every=3", "run.log_every=4") == 0
    weights = [
        f"{name}"
        for name in ("model.safetensors", "optimizer.safetensors")
        if _final(folder / "other-cadence", name) != _final(reference, name)
    ]
    outcome["other-cadence"] = weights
    return outcome


def _final(run: Path, name: str) -> bytes:
    return (run / "checkpoints" / f"step-{STEPS:08d}" / name).read_bytes()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), [int(step) for step in sys.argv[2:]] or range(1, STEPS))))

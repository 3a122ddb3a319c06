"""Kills a series of saves at every named instant, recovers, finishes the series and compares with an undisturbed one.

Usage: python -m tests.strata_core.training.checkpoint.kill_drill FOLDER. Prints one JSON object: how often each instant
was hit, and what was wrong by case.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

from strata_core.errors import DataError
from strata_core.training.checkpoint import load_checkpoint, newest_whole
from tests.drills.forking import KILLED, in_child
from tests.strata_core.training.checkpoint.helpers import assert_holds_step, make_state, open_store, tree

SERIES = [(1, 1, True), (2, 102, False), (2, 2, False), (3, 3, False)]
"""Step, which step's content it gets, whether it is the best. Step 2 is saved twice, first with other content."""

INSTANTS = [
    "partial made",
    "model.safetensors chunk",
    *(
        f"{name} {what}"
        for name in ("model.safetensors", "trainer.json", "manifest.json")
        for what in ("written", "synced")
    ),
    "folder synced",
    "old one aside",
    "renamed",
    "latest pointed",
    "best pointed",
    "removing",
    "removed",
]


def save_series(folder: Path, series: list[tuple[int, int, bool]]) -> None:
    store = open_store(folder, keep_last=1)
    for step, content, best in series:
        store.save(step, make_state(content), best=best)
    store.wait()


def recover(folder: Path, completed: bool) -> int:
    """Position in the series of the newest whole checkpoint; 0 where there may be none and is none."""
    if completed:
        newest_whole(folder)
    open_store(folder)
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".step")]
    try:
        path, passed_over = newest_whole(folder)
    except DataError:
        assert not completed
        return 0
    assert passed_over == []
    loaded = load_checkpoint(path)
    content = loaded.trainer["progress"]["step"]
    assert_holds_step(loaded, content)
    return [entry[1] for entry in SERIES].index(content)


def run_case(folder: Path, instant: str, count: int, reference: dict[str, str]) -> str | None:
    """What went wrong, "" where nothing did, None where the instant does not come `count` times."""
    shutil.rmtree(folder, ignore_errors=True)
    status = in_child(lambda: save_series(folder, SERIES), {"STRATA_FAULT_POINT": f"{instant}:{count}"})
    if status == 0:
        return None
    if status != KILLED:
        return f"the child ended with {status}"
    first_save_done = (folder / "latest").exists()

    def finish() -> None:
        position = recover(folder, first_save_done)
        save_series(folder, SERIES[position:])

    if in_child(finish) != 0:
        return "no recovery"
    found = tree(folder)
    return "" if found == reference else f"differs: {sorted(found.items() ^ reference.items())}"


def main() -> None:
    folder = Path(sys.argv[1])
    in_child(lambda: save_series(folder / "reference", SERIES))
    reference = tree(folder / "reference")
    hits: Counter[str] = Counter()
    problems = {}
    for instant in INSTANTS:
        count = 1
        while (problem := run_case(folder / "killed", instant, count, reference)) is not None:
            hits[instant] += 1
            if problem:
                problems[f"{instant}:{count}"] = problem
            count += 1
    print(json.dumps({"hits": {instant: hits[instant] for instant in INSTANTS}, "problems": problems}))


if __name__ == "__main__":
    main()

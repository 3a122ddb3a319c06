"""Trains the same recipes on one, two and four ranks and tells how the results compare.

Usage: python -m tests.drills.same_on_ranks FOLDER. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from strata_core.launch.starting import resume_run, train
from strata_core.recipes import load_recipe
from strata_core.tasks.language_model.task import LanguageModelTask
from tests.drills.attempts import said_beside
from tests.drills.forking import KILLED, differences, in_ranks, records_without_timing
from tests.strata_core.conftest import TINY, made_up_documents, write_byte_corpus

STEPS = 12
SETTINGS = (*TINY, "checkpoint.every=3", "checkpoint.keep_last=9", "evaluation.every=5", "batch.num_workers=0")
EXACT = "distributed.exact_reduction=true"
SEQ_LEN = 32


class Comparison:
    """Runs in one folder, by name.

    Args:
        folder: where the runs are made.
        corpus: what they are trained on.
    """

    def __init__(self, folder: Path, corpus: Path) -> None:
        self._folder = folder
        self._corpus = corpus

    def train(self, name: str, ranks: int, *settings: str, stop_at: str | None = None) -> list[int | None]:
        """Trains a new run and returns the exit codes of its ranks."""
        recipe_path = self._folder / "recipe.toml"
        recipe_path.write_text(f"[corpus]\npath = {str(self._corpus)!r}\n")
        recipe = load_recipe(recipe_path, "lm", [*SETTINGS, *settings])
        return self._run(name, ranks, lambda run: train(recipe, run, device="cpu"), stop_at)

    def resume(self, name: str, ranks: int, stop_at: str | None = None) -> list[int | None]:
        """Goes on with a run."""
        return self._run(name, ranks, lambda run: resume_run(run, device="cpu"), stop_at)

    def _run(self, name: str, ranks: int, work: Callable[[Path], object], stop_at: str | None) -> list[int | None]:
        run = self._folder / name

        def noting_what_is_read() -> None:
            with open(said_beside(run), "ab") as said:
                os.dup2(said.fileno(), sys.stderr.fileno())
            _note_reads(run)
            work(run)

        environment = {"STRATA_FAULT_POINT": stop_at} if stop_at else {}
        return in_ranks(noting_what_is_read, ranks, environment)

    def losses(self, name: str) -> list[float]:
        """The loss of each step, then those of the evaluations."""
        run = self._folder / name
        records = records_without_timing(run / "metrics.jsonl") + records_without_timing(run / "evaluations.jsonl")
        return [record["loss"] for record in records]

    def largest_error(self, name: str, reference: str) -> float:
        """The largest relative difference of their losses; infinite where they have another number of them."""
        pairs = list(zip(self.losses(name), self.losses(reference), strict=False))
        if len(self.losses(name)) != len(self.losses(reference)) or len(pairs) < STEPS:
            return float("inf")
        return max(abs(ours - theirs) / abs(theirs) for ours, theirs in pairs)

    def different(self, name: str, reference: str) -> list[str]:
        """What is not the same to the last bit; a manifest names the ranks that it was started on."""
        found = differences(self._folder / name, self._folder / reference, STEPS)
        return [file for file in found if not file.endswith("manifest.json")]

    def windows_read(self, name: str) -> list[list[int]]:
        """The windows of each micro-batch of the run, in the order of the global batches."""
        files = sorted(self._folder.glob(f"{name}.read-*"))
        by_rank = [[json.loads(line) for line in path.read_text().splitlines()] for path in files]
        share = len(by_rank[0]) // STEPS
        return [
            windows
            for step in range(STEPS)
            for micro_batches in by_rank
            for windows in micro_batches[step * share : (step + 1) * share]
        ]


def _note_reads(run: Path) -> None:
    fetch = LanguageModelTask.fetch
    path = Path(f"{run}.read-{os.environ.get('RANK', '0')}")

    def fetch_and_note(task, micro_batch):
        with open(path, "a") as file:
            file.write(f"{micro_batch.tolist()}\n")
        return fetch(task, micro_batch)

    LanguageModelTask.fetch = fetch_and_note


def compare_rounding(runs: Comparison, accumulation: int, ranks: int) -> dict:
    """The same global batch in one process and on several ranks that accumulate, without exact reduction."""
    batch = f"batch.batch_size={2 * accumulation * ranks}"
    alone, together = f"alone-{accumulation}x{ranks}", f"ranks-{accumulation}x{ranks}"
    codes = runs.train(alone, 1, batch) + runs.train(together, ranks, batch)
    return {
        "codes": codes,
        "largest_error": runs.largest_error(together, alone),
        "same_windows": runs.windows_read(together) == runs.windows_read(alone),
    }


def compare_exact(runs: Comparison) -> dict[str, list[str]]:
    """The same bits on 1, 2 and 4 ranks, and when their number changes over two kills."""
    batch = "batch.batch_size=8"
    for ranks in (1, 2, 4):
        assert set(runs.train(f"exact-{ranks}", ranks, batch, EXACT)) == {0}
    # The first rank dies at a save, and the others of having lost it.
    first, *others = runs.train("changing", 2, batch, EXACT, stop_at="renamed:2")
    assert (first, others) == (KILLED, [1])
    assert runs.resume("changing", 1, stop_at="model.safetensors synced:1") == [KILLED]
    ended = runs.resume("changing", 4)
    assert set(ended) == {0}, ended
    return {name: runs.different(name, "exact-1") for name in ("exact-2", "exact-4", "changing")}


def compare_few_windows(folder: Path) -> dict:
    """13 windows for two ranks of two: no epoch comes out even."""
    text = "x" * (13 * SEQ_LEN)
    corpus = write_byte_corpus(folder / "thirteen", {"train": [text], "val": made_up_documents(2, seed=2)})
    runs = Comparison(folder, corpus)
    codes = runs.train("thirteen-1", 1, EXACT) + runs.train("thirteen-2", 2, EXACT)
    windows = [window for windows in runs.windows_read("thirteen-2") for window in windows]
    epochs = [sorted(windows[start : start + 13]) for start in range(0, len(windows) - 12, 13)]
    return {"codes": codes, "different": runs.different("thirteen-2", "thirteen-1"), "epochs": epochs}


def main() -> None:
    folder = Path(sys.argv[1])
    documents = {"train": made_up_documents(40, seed=1), "val": made_up_documents(6, seed=2)}
    runs = Comparison(folder, write_byte_corpus(folder / "corpus", documents))
    outcome = {
        "rounding": {f"{a} x {r}": compare_rounding(runs, a, r) for a, r in ((1, 2), (4, 2), (1, 4), (4, 4))},
        "exact": compare_exact(runs),
        "few windows": compare_few_windows(folder),
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()

"""A training run of `strata train-lm` on a CPU against a loop written by hand, in one table.

Run: python benchmarks/lm.py [--rounds 5] [--steps 30] [--recipe lm/small] [--set key=value]...

Each round trains once for every row, in turn, each in a process of its own, from the same weights and on the same
windows of the same corpus. Rows:

- strata: `train_lm` as the command calls it, with records and the final checkpoint.
- bare loop: torch's own modules, F.cross_entropy on all scores, clipping, torch.optim.AdamW as it comes.
- bare loop, allocator: the same, with the allocator settings that strata makes.
- bare loop, strata's model: strata's modules in the bare loop, all scores at once.

Columns: tokens per second (median of the rounds' medians); strata's speed as a multiple of the row's (median over
rounds); peak resident memory of the process (largest round); strata's as a multiple of the row's. Below the table: how
much longer a step of strata takes than its own forward, backward and optimizer, measured inside the run, and the
difference of the two models' first losses.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

STEPS_A_GROUP = 5
"""Steps timed together; the first group warms up and is left out."""

SETTINGS = (
    "model.dropout=0.0",
    "batch.micro_batch_size=16",
    "optimizer.warmup_steps=2",
    "evaluation.every=0",
    "checkpoint.every=0",
)
ROWS = ("strata", "bare loop", "bare loop, allocator", "bare loop, strata's model")

# torch is imported by the workers alone: Linux counts what a parent held before exec into its child's peak memory.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30, help="optimizer steps in a round")
    parser.add_argument("--recipe", default="lm/small")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="key=value")
    parser.add_argument("--worker", choices=ROWS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    overrides = [
        *SETTINGS,
        f"run.max_steps={arguments.steps}",
        f"run.log_every={STEPS_A_GROUP}",
        *arguments.settings,
    ]
    if arguments.worker:
        print(json.dumps(work(arguments.worker, arguments.recipe, overrides)))
        return
    results: dict[str, list[dict[str, Any]]] = {row: [] for row in ROWS}
    for _ in range(arguments.rounds):
        for row in ROWS:
            results[row].append(run_worker(row))
    print_table(results)


def run_worker(row: str) -> dict[str, Any]:
    command = [sys.executable, *sys.argv, "--worker", row]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(finished.stdout.splitlines()[-1])


def work(row: str, recipe_name: str, overrides: list[str]) -> dict[str, Any]:
    from strata_core.recipes import load_recipe

    recipe = load_recipe(recipe_name, "lm", overrides)
    measured = train_with_strata(recipe) if row == "strata" else train_by_hand(recipe, row)
    return {**measured, "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def train_with_strata(recipe: Any) -> dict[str, Any]:
    """Tokens per second of each group, and wall time as a multiple of the time inside the model and the optimizer."""
    from strata_core.launch.starting import train
    from strata_core.observer import Observer

    inside = {"seconds": 0.0}
    marks: list[tuple[float, float]] = []
    groups: list[float] = []

    class Groups(Observer):
        def step_logged(self, record: Any) -> None:
            marks.append((time.perf_counter(), inside["seconds"]))
            groups.append(record["timing"]["tokens_per_second"])

    with tempfile.TemporaryDirectory() as folder, model_and_optimizer_timed(inside):
        result = train(recipe, Path(folder, "run"), device="cpu", observer=Groups())
    (wall_start, inside_start), (wall_end, inside_end) = marks[0], marks[-1]
    overhead = (wall_end - wall_start) / (inside_end - inside_start) - 1
    return {"tokens_per_second": groups[1:], "overhead": overhead, "first_loss": result["first_loss"]}


@contextmanager
def model_and_optimizer_timed(inside: dict[str, float]) -> Iterator[None]:
    """Adds to `inside["seconds"]` what forward, backward and the optimizer's step take."""
    import torch

    from strata_core.tasks.language_model.task import LanguageModelTask

    def timed(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                inside["seconds"] += time.perf_counter() - started

        return call

    with (
        mock.patch.object(LanguageModelTask, "loss_sums", timed(LanguageModelTask.loss_sums)),
        mock.patch.object(torch.Tensor, "backward", timed(torch.Tensor.backward)),
        mock.patch.object(torch.optim.AdamW, "step", timed(torch.optim.AdamW.step)),
    ):
        yield


def train_by_hand(recipe: Any, row: str) -> dict[str, Any]:
    """Tokens per second of each group of steps of the bare loop."""
    import torch
    import torch.nn.functional as F
    from plain_language_model import PlainLanguageModel

    from strata_core.corpus.preparing.samples import sample_corpus
    from strata_core.corpus.reading import open_corpus
    from strata_core.observer import SILENT
    from strata_core.tasks.language_model.task import LanguageModelTask
    from strata_core.training.allocator import keep_freed_memory

    if row == "bare loop, allocator":
        keep_freed_memory()
    table = recipe.corpus
    folder = table.path or sample_corpus(table.sample, vocab_size=table.sample_vocab_size, observer=SILENT)
    task = LanguageModelTask(recipe, open_corpus(folder))
    strata_model = task.build_model()
    if row == "bare loop, strata's model":
        model = strata_model

        def scores_of(tokens):
            return model(tokens) @ model.output_weight.T

    else:
        model = scores_of = PlainLanguageModel(strata_model.config)
        model.load_state_dict(
            {name.removeprefix("transformer."): value for name, value in strata_model.state_dict().items()}
        )
    del strata_model
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.optimizer.lr)
    model.train()
    rates: list[float] = []
    first_loss = None
    for group in range(recipe.run.max_steps // STEPS_A_GROUP):
        started = time.perf_counter()
        tokens_seen = 0
        for step in range(group * STEPS_A_GROUP, (group + 1) * STEPS_A_GROUP):
            micro_batches = task.plan(step).micro_batches
            for micro_batch in micro_batches:
                batch = task.fetch(micro_batch)
                scores = scores_of(batch["tokens"])
                loss = F.cross_entropy(scores.flatten(0, 1), batch["labels"].flatten())
                (loss / len(micro_batches)).backward()
                tokens_seen += batch["tokens"].numel()
            first_loss = first_loss or loss.item()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.optimizer.grad_clip)
            optimizer.step()
            optimizer.zero_grad()
        rates.append(tokens_seen / (time.perf_counter() - started))
    return {"tokens_per_second": rates[1:], "first_loss": first_loss}


def print_table(results: dict[str, list[dict[str, Any]]]) -> None:
    speeds = {row: [statistics.median(round_["tokens_per_second"]) for round_ in results[row]] for row in ROWS}
    peaks = {row: max(round_["peak_bytes"] for round_ in results[row]) for row in ROWS}
    print(f"{'':28}{'tokens/s':>10}{'strata is':>12}{'peak MiB':>11}{'strata has':>12}")
    for row in ROWS:
        faster = statistics.median(ours / theirs for ours, theirs in zip(speeds["strata"], speeds[row], strict=True))
        speed = f"{statistics.median(speeds[row]):>10,.0f}{faster:>10.2f} x"
        print(f"{row:28}{speed}{peaks[row] / 2**20:>11,.0f}{peaks['strata'] / peaks[row]:>10.2f} x")
    overhead = statistics.median(round_["overhead"] for round_ in results["strata"])
    print(f"loop overhead over strata's own forward, backward and optimizer: {overhead:.2%}")
    difference = results["strata"][0]["first_loss"] - results["bare loop"][0]["first_loss"]
    print(f"first loss, strata minus bare loop: {difference:.1e} nats")


if __name__ == "__main__":
    main()

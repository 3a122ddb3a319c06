"""Predicted against measured memory of training steps on a CPU, in one table.

Run: python benchmarks/memory.py [--only NAME]... [--repeat N]
     python benchmarks/memory.py --hard-cap 40

Each configuration runs in a process of its own. Columns: the predicted peak of the tensors; the peak of two real steps
by torch's MemTracker, and the prediction's error against it; the predicted peak of the whole process; the largest
resident size of `train_lm` with its checkpoints, the largest of N runs, and the prediction's error against that.

With --hard-cap, runs of `train_lm` under RLIMIT_DATA, which counts what a process may write to as the kernel hands it
out: heap, checkpoint copies, thread stacks. The limits lie between 0.75 and 1.3 times what a run of the configuration
was seen to need without one. Every run is predicted, and tried whatever the prediction says. Below the table: how many
that were said to fit died (0 is wanted), and how many that were refused had 10 % to spare (at most 5 % are wanted).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

BASE = (
    "run.max_steps=5",
    "optimizer.warmup_steps=1",
    "checkpoint.every=2",
    "evaluation.every=0",
    'run.precision="fp32"',
    "run.force_precision=true",
)
WIDE = ("model.d_model=256", "batch.seq_len=256")
LONG = ("batch.seq_len=1024", "batch.micro_batch_size=4")
BLOCKS = 'memory.recompute="blocks"'
CONFIGURATIONS: dict[str, tuple[str, ...]] = {
    "quickstart": (),
    "accumulated": ("batch.micro_batch_size=4",),
    "wide": WIDE,
    "wide, accumulated": (*WIDE, "batch.micro_batch_size=4"),
    "wide, recomputed": (*WIDE, BLOCKS),
    "wide, dropout off": (*WIDE, "model.dropout=0.0"),
    "grouped queries": (*WIDE, "model.n_kv_heads=2"),
    "untied": (*WIDE, "model.tie_embeddings=false"),
    "document masks": (*WIDE, "batch.mask_documents=true"),
    "wide, four passes": (*WIDE, "batch.batch_size=64"),
    "long windows": LONG,
    "long, recomputed": (*LONG, BLOCKS),
    "deep": ("model.n_layers=12", "batch.micro_batch_size=8"),
    "exact sums": ("batch.micro_batch_size=2", "distributed.exact_reduction=true"),
    "bf16": ('run.precision="bf16"', "batch.seq_len=64", "batch.batch_size=4", "batch.micro_batch_size=4"),
    "bf16, recomputed": (
        'run.precision="bf16"',
        "batch.seq_len=64",
        "batch.batch_size=4",
        "batch.micro_batch_size=4",
        BLOCKS,
    ),
    "fp16": ('run.precision="fp16"', "batch.seq_len=64", "batch.batch_size=4", "batch.micro_batch_size=4"),
}
HARD_CAP_CONFIGURATIONS = ("quickstart", "wide, accumulated", "wide", "wide, recomputed", "long windows")
LOWEST_SHARE, HIGHEST_SHARE = 0.75, 1.3
MIB = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CONFIGURATIONS, help="configurations to run; default: all")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each configuration; default: 1")
    parser.add_argument("--hard-cap", type=int, metavar="RUNS", help="runs under a limit instead of the table")
    parser.add_argument("--worker", choices=("tensors", "train"), help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker == "tensors":
        print(json.dumps(_measure_tensors(arguments.only[0])))
    elif arguments.worker == "train":
        _train(arguments.only[0], arguments.limit)
    elif arguments.hard_cap:
        _hard_cap_table(arguments.hard_cap, tuple(arguments.only or HARD_CAP_CONFIGURATIONS))
    else:
        _prediction_table(arguments.only or list(CONFIGURATIONS), arguments.repeat)


def _prediction_table(names: list[str], repeat: int) -> None:
    header = ("tensors MiB", "measured", "error", "process MiB", "resident", "error")
    print(f"{'configuration':<20}" + "".join(f"{title:>13}" for title in header))
    errors = []
    for name in names:
        tensors = _worker("tensors", name)[0]
        runs = [_last(_worker("train", name)) for _ in range(repeat)]
        predicted = min(run["predicted"] for run in runs)
        resident = max(run["resident"] for run in runs)
        errors.append(tensors["predicted"] / tensors["measured"] - 1)
        process_error = predicted / resident - 1
        figures = (
            f"{tensors['predicted'] / MIB:.1f}",
            f"{tensors['measured'] / MIB:.1f}",
            f"{errors[-1]:+.3%}",
            f"{predicted / MIB:.0f}",
            f"{resident / MIB:.0f}",
            f"{process_error:+.1%}",
        )
        print(f"{name:<20}" + "".join(f"{figure:>13}" for figure in figures), flush=True)
    print(f"tensors: errors from {min(errors):+.3%} to {max(errors):+.3%} over {len(errors)} configurations")


def _hard_cap_table(runs: int, names: tuple[str, ...]) -> None:
    needed = {name: _last(_worker("train", name))["writable"] for name in names}
    print(f"{'configuration':<20}{'limit MiB':>13}{'of the need':>13}{'said to fit':>13}{'finished':>13}")
    died = refused = refused_with_room = 0
    for run in range(runs):
        name = names[run % len(names)]
        share = LOWEST_SHARE + (HIGHEST_SHARE - LOWEST_SHARE) * (run + 0.5) / runs
        answers = _worker("train", name, "--limit", str(int(needed[name] * share)))
        fits = answers[0]["fits"] if answers else False
        finished = bool(answers) and "resident" in answers[-1]
        died += fits and not finished
        refused += not fits
        refused_with_room += not fits and share >= 1.1
        cells = (f"{needed[name] * share / MIB:.0f}", f"{share:.2f}", str(fits), str(finished))
        print(f"{name:<20}" + "".join(f"{cell:>13}" for cell in cells), flush=True)
    print(f"said to fit and died: {died}; refused with 10 % to spare: {refused_with_room} of {refused}")


def _worker(task: str, name: str, *more: str) -> list[dict[str, Any]]:
    """What a worker printed, one JSON object a line; a worker under a limit may die before its last one."""
    command = [sys.executable, __file__, "--worker", task, "--only", name, *more]
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if more else None, text=True)
    return [json.loads(line) for line in output.stdout.splitlines() if line.startswith("{")]


def _last(answers: list[dict[str, Any]]) -> dict[str, Any]:
    if not answers or "resident" not in answers[-1]:
        raise SystemExit("a run without a limit failed; its message is above")
    return answers[-1]


def _recipe(name: str) -> Any:
    from strata_core.recipes import load_recipe

    return load_recipe("quickstart", "lm", [*BASE, *CONFIGURATIONS[name]])


def _measure_tensors(name: str) -> dict[str, int]:
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker

    from strata_core.corpus.preparing.samples import sample_corpus
    from strata_core.corpus.reading import open_corpus
    from strata_core.memory_fit.prediction import predict_memory
    from strata_core.observer import SILENT
    from strata_core.tasks.language_model.task import LanguageModelTask
    from strata_core.training.distributed import ALONE
    from strata_core.training.precision import Precision
    from strata_core.training.step import TrainingStep

    recipe = _recipe(name)
    vocab_size = recipe.corpus.sample_vocab_size
    corpus = open_corpus(sample_corpus(recipe.corpus.sample, vocab_size=vocab_size, observer=SILENT))
    task = LanguageModelTask(recipe, corpus)
    plan = predict_memory(lambda changed: LanguageModelTask(changed, corpus), recipe, device_type="cpu")
    device = torch.device("cpu")
    tracker = MemTracker()
    with tracker:
        precision = Precision(recipe.run.precision, recipe.run.precision)
        step = TrainingStep(task, task.build_model(), recipe, device, ALONE, precision)
        for number in range(2):
            step_plan = task.plan(number)
            batches = _fetched(task, step_plan.micro_batches, tracker)
            step.update(step.accumulate(step_plan, batches, number).sum(dim=0), 1e-3, number)
    measured = tracker.get_tracker_snapshot("peak")[device]["Total"]
    return {"predicted": plan.allocator_peak_bytes, "measured": measured}


def _fetched(task: Any, micro_batches: Sequence[Any], tracker: Any) -> Iterator[Any]:
    for micro_batch in micro_batches:
        tracker.reset_mod_stats()  # it follows each module once between resets
        yield task.fetch(micro_batch)


def _train(name: str, limit_bytes: int | None) -> None:
    """Prints the prediction's verdict, trains, and prints what the process took."""
    import torch

    from strata_core.launch.starting import plan_memory, train
    from strata_core.memory_fit.measure import predicted_and_measured

    if limit_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
    recipe = _recipe(name)
    plan = plan_memory(recipe, device="cpu")
    print(json.dumps({"fits": plan.fits}), flush=True)
    writable = _LargestWritable()
    with tempfile.TemporaryDirectory() as folder:
        train(recipe, Path(folder, "run"), device="cpu")
    figures = predicted_and_measured(plan, torch.device("cpu"))
    answer = {
        "predicted": figures["predicted_bytes"],
        "resident": figures["measured_bytes"],
        "writable": writable.bytes,
    }
    print(json.dumps(answer), flush=True)


class _LargestWritable:
    """The largest VmData of this process from now on, looked at a hundred times a second."""

    def __init__(self) -> None:
        self.bytes = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text()
            self.bytes = max(self.bytes, int(status.split("VmData:")[1].split()[0]) * 1024)
            time.sleep(0.01)


if __name__ == "__main__":
    main()

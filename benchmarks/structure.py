"""Tokens per second of each mode of structure supervision against the pure language model, in one table.

Run: python benchmarks/structure.py [--rounds 3] [--steps 30] [--threads N]

Each round trains the small synthetic twin of every mode once, in turn, each in a process of its own, on generated
sentences. All have one width and depth. A token is one of a window or of an annotated sentence, counted once although a
sentence has two passes. Columns: tokens per second (median over rounds), as a multiple of the pure row of the round,
and the peak resident memory of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROWS: dict[str, tuple[str, ...]] = {
    "pure": (
        "lm/synthetic/ud",
        "objective.ud.arc=0",
        "objective.ud.relation=0",
        "objective.ud.node_type=0",
        "batch.sentences=0",
        "batch.batch_size=12",
        "batch.micro_batch_size=",
    ),
    "ud": ("lm/synthetic/ud",),
    "srl": ("lm/synthetic/srl",),
    "chart": ("lm/synthetic/chart",),
    "mixed": ("lm/synthetic/mixed",),
    "graph-object": ("lm/synthetic/graph-object",),
    "role-edit": ("lm/synthetic/role-edit",),
}
SHAPE = ("model.d_model=128", "model.n_layers=3", "model.n_heads=4")

# torch is imported by the workers alone: Linux counts what a parent held before exec into its child's peak memory.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--worker", choices=ROWS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(_measure(arguments.worker, arguments.steps)))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ROWS}
    for _ in range(arguments.rounds):
        for name in ROWS:
            command = [sys.executable, __file__, "--worker", name, "--steps", str(arguments.steps)]
            environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
            answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
            found[name].append(json.loads(answer.stdout.splitlines()[-1]))
    _show(found)


def _measure(name: str, steps: int) -> dict[str, float]:
    import resource

    from strata_core.launch.starting import train
    from strata_core.recipes import load_recipe

    recipe_name, *changes = ROWS[name]
    settings = [*SHAPE, *changes, f"run.max_steps={steps}", "run.log_every=1", "evaluation.every=0"]
    settings += ["checkpoint.every=0", "optimizer.warmup_ratio=0.1", "evaluation.metric=loss"]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(load_recipe(recipe_name, "lm", settings), run, device="cpu")
        records: list[dict[str, Any]] = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    tokens = records[-1]["tokens_seen"] - records[4]["tokens_seen"]
    seconds = sum(record["timing"]["step_seconds"] for record in records[5:])
    return {"rate": tokens / seconds, "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _show(found: dict[str, list[dict[str, float]]]) -> None:
    print("| | tokens/s | x pure | peak MiB |")
    print("| --- | --- | --- | --- |")
    for name, rounds in found.items():
        rates = [outcome["rate"] for outcome in rounds]
        ratios = [own["rate"] / pure["rate"] for own, pure in zip(rounds, found["pure"], strict=True)]
        memory = max(outcome["mib"] for outcome in rounds)
        print(f"| {name} | {statistics.median(rates):,.0f} | {statistics.median(ratios):.2f} | {memory:,.0f} |")


if __name__ == "__main__":
    main()

"""What only a GPU can show, in one table; under ten minutes on one GPU of 40 GB or more.

Run: python benchmarks/gpu.py [--peak-teraflops T] [--folder DIR]

Rows:

- memory, ...: predicted peak of the device's allocator against torch.cuda.max_memory_allocated, by configuration.
  Wanted: within 2 % in fp32, 5 % under autocast or recomputation, never more than 1 % under. torch.compile has no
  prediction of its own: it may need less.
- resumed after a kill: files of the final checkpoint that differ, under deterministic kernels, from a run never killed.
- deterministic kernels: how much longer a step takes with them.
- device waits: whether torch met a synchronisation between log steps (set_sync_debug_mode("error")).
- MFU of lm/1b: 6 x parameters + 12 x layers x width x window floating-point operations a token (Chowdhery et al. 2022,
  PaLM, appendix B), over the device's peak in bf16. Wanted: 50 % or more on one H200.

Each measurement runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

QUIET = ("optimizer.warmup_steps=1", "checkpoint.every=0", "evaluation.every=0")
WIDE = (*QUIET, "model.d_model=512", "model.n_heads=8", "batch.seq_len=512", "run.max_steps=4")
MEMORY: dict[str, tuple[str, ...]] = {
    "fp32": (*WIDE, 'run.precision="fp32"'),
    "fp32, accumulated": (*WIDE, 'run.precision="fp32"', "batch.micro_batch_size=4"),
    "bf16": (*WIDE, 'run.precision="bf16"'),
    "bf16, recomputed": (*WIDE, 'run.precision="bf16"', 'memory.recompute="blocks"'),
    "bf16, deep": (*WIDE, 'run.precision="bf16"', "model.n_layers=16"),
    "fp16": (*WIDE, 'run.precision="fp16"'),
    "bf16, document masks": (*WIDE, 'run.precision="bf16"', "batch.mask_documents=true"),
    "bf16, compiled": (*WIDE, 'run.precision="bf16"', "run.compile=true"),
}
RESUMED = (
    'run.precision="bf16"',
    "run.deterministic=true",
    "run.max_steps=12",
    "optimizer.warmup_steps=2",
    "run.log_every=1",
    "checkpoint.every=3",
    "checkpoint.keep_last=9",
    "evaluation.every=5",
)
TIMED = (*WIDE, 'run.precision="bf16"', "run.max_steps=60", "run.log_every=20")
WATCHED = (*QUIET, 'run.precision="bf16"', "run.max_steps=30", "run.log_every=1000")
BILLION = (*QUIET, "batch.batch_size=16", "run.max_steps=1000", "run.log_every=4")
BILLION_RECORDS = 5
PEAK_TERAFLOPS = {"H200": 989, "H100": 989, "A100": 312, "L40S": 362, "L4": 121, "4090": 165}
"""Dense bf16 with fp32 accumulation, from the makers' data sheets."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peak-teraflops", type=float, help="of the device in dense bf16; default: by its name")
    parser.add_argument("--folder", type=Path, help="where runs are made; default: a temporary folder")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--recipe", default="quickstart", help=argparse.SUPPRESS)
    parser.add_argument("--set", action="append", default=[], dest="settings", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        WORKERS[arguments.worker](arguments.recipe, arguments.settings, arguments.run)
        return
    name = device_name()
    if name is None:
        print("benchmarks/gpu.py needs a CUDA device, and torch finds none here", file=sys.stderr)
        sys.exit(2)
    peak = arguments.peak_teraflops or next((flops for key, flops in PEAK_TERAFLOPS.items() if key in name), None)
    started = time.monotonic()
    print(name)
    print(f"{'':<32}{'predicted':>16}{'measured':>16}{'difference':>14}")
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="gpu-benchmark-") as folder:
        for row in rows(Path(folder), peak):
            print(f"{row[0]:<32}{row[1]:>16}{row[2]:>16}{row[3]:>14}", flush=True)
    print(f"{time.monotonic() - started:.0f} s")


def device_name() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def rows(folder: Path, peak_teraflops: float | None) -> Iterator[tuple[str, str, str, str]]:
    """The table's rows, each measured when it is asked for."""
    for name, settings in MEMORY.items():
        found = worker("train", folder / f"memory {name}", settings)
        difference = found["predicted"] / found["measured"] - 1
        yield f"memory, {name}", mebibytes(found["predicted"]), mebibytes(found["measured"]), f"{difference:+.2%}"
    yield "resumed after a kill", "0 files", f"{len(differing_files(folder))} files", ""
    usual, deterministic = (
        worker("train", folder / f"deterministic {value}", (*TIMED, f"run.deterministic={value}"))["step_seconds"]
        for value in ("false", "true")
    )
    times = (f"{usual * 1e3:.2f} ms", f"{deterministic * 1e3:.2f} ms", f"{deterministic / usual - 1:+.1%}")
    yield "step, deterministic kernels", *times
    yield "device waits between log steps", "none", worker("watched", folder / "watched", WATCHED)["waits"], ""
    yield "MFU of lm/1b", "50.0 %", *model_flops_utilisation(folder, peak_teraflops)


def mebibytes(size_bytes: float) -> str:
    return f"{size_bytes / 2**20:,.1f} MiB"


def worker(
    kind: str, run: Path, settings: tuple[str, ...], *, recipe: str = "quickstart", **environment: str
) -> dict[str, Any]:
    """What a worker printed; empty where it killed itself at a fault point."""
    process = start_worker(kind, run, settings, recipe=recipe, **environment)
    output, _ = process.communicate()
    if process.returncode == -signal.SIGKILL:
        return {}
    if process.returncode != 0:
        sys.exit(f"{run.name}: the worker failed with {process.returncode}; its message is above")
    return json.loads(output.splitlines()[-1])


def start_worker(
    kind: str, run: Path, settings: tuple[str, ...], *, recipe: str = "quickstart", **environment: str
) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--worker", kind, "--run", str(run), "--recipe", recipe]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def differing_files(folder: Path) -> list[str]:
    """Files of the final checkpoint that a kill and a resume have changed; a manifest names its run's start."""
    undisturbed, killed = folder / "undisturbed", folder / "killed"
    worker("train", undisturbed, RESUMED)
    worker("train", killed, RESUMED, STRATA_FAULT_POINT="latest pointed:2")
    worker("resume", killed, ())
    final = Path("checkpoints", "step-00000012")
    names = [path.name for path in (undisturbed / final).iterdir() if path.name != "manifest.json"]
    return [name for name in names if (undisturbed / final / name).read_bytes() != (killed / final / name).read_bytes()]


def model_flops_utilisation(folder: Path, peak_teraflops: float | None) -> tuple[str, str]:
    """MFU and tokens per second of lm/1b: the last of some records, after which the run is killed unsaved."""
    run = folder / "billion"
    process = start_worker("train", run, BILLION, recipe="lm/1b")
    metrics = run / "metrics.jsonl"
    while process.poll() is None and (not metrics.exists() or metrics.read_bytes().count(b"\n") < BILLION_RECORDS):
        time.sleep(0.2)
    process.kill()
    process.wait()
    if not metrics.exists():
        sys.exit("lm/1b: the worker failed; its message is above")
    tokens_per_second = json.loads(metrics.read_text().splitlines()[-1])["timing"]["tokens_per_second"]
    record = json.loads((run / "manifest.json").read_text())["record"]
    recipe = load("lm/1b", BILLION)
    attention_flops = 12 * recipe.model.n_layers * recipe.model.d_model * recipe.batch.seq_len
    flops_a_token = 6 * record["model"]["parameters"] + attention_flops
    teraflops = flops_a_token * tokens_per_second / 1e12
    share = f"{teraflops / peak_teraflops:.1%}" if peak_teraflops else f"{teraflops:.0f} TFLOP/s"
    return share, f"{tokens_per_second:,.0f} tok/s"


def load(recipe: str, settings: tuple[str, ...] | list[str]) -> Any:
    from strata_core.recipes import load_recipe

    return load_recipe(recipe, "lm", list(settings))


def train(recipe_name: str, settings: list[str], run: Path) -> None:
    """Worker: predicts, then trains a new run."""
    from strata_core.launch.starting import plan_memory, train

    recipe = load(recipe_name, settings)
    predicted = plan_memory(recipe, device="cuda").allocator_peak_bytes
    result = train(recipe, run, device="cuda")
    record = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    answer = {"predicted": predicted, "measured": result["peak_memory_bytes"]}
    print(json.dumps({**answer, "step_seconds": record["timing"]["step_seconds"]}))


def resume(_recipe: str, _settings: list[str], run: Path) -> None:
    """Worker: goes on with a run."""
    from strata_core.launch.starting import resume_run

    print(json.dumps(resume_run(run, device="cuda")))


def train_watched(recipe_name: str, settings: list[str], run: Path) -> None:
    """Worker: trains while torch turns any wait for the device into an error, but for the first and last steps."""
    import torch

    from strata_core.launch.starting import train
    from strata_core.training.step import TrainingStep

    recipe = load(recipe_name, settings)
    accumulate = TrainingStep.accumulate

    def watched(step: TrainingStep, plan: Any, batches: Any, number: int) -> Any:
        within = 3 <= number < recipe.run.max_steps - 2
        torch.cuda.set_sync_debug_mode("error" if within else "default")
        return accumulate(step, plan, batches, number)

    try:
        with mock.patch.object(TrainingStep, "accumulate", watched):
            train(recipe, run, device="cuda")
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        print(json.dumps({"waits": "yes: see above"}))
        raise SystemExit(0) from error
    print(json.dumps({"waits": "none"}))


WORKERS = {"train": train, "resume": resume, "watched": train_watched}


if __name__ == "__main__":
    main()

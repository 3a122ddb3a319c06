"""Checkpoints against what PyTorch offers, in one table of seconds.

Run: python benchmarks/checkpoint.py [--megabytes 1000] [--repetitions 5] [--folder DIR]

Each repetition does every row once, in turn, on one state of weights and AdamW moments. The columns:

- first held up, held up: how long the training thread waits for a save. After the call it computes matrix products
  for about a second, as a step computes its gradients; then strata waits for its copy, which the update would spoil.
  The first save allocates host memory.
- slowed: how much longer the products take while the save goes on beside them.
- written: from the call until every byte is synced. strata's time includes the SHA-256 of every file, so torch.save is
  also shown with one.
- opened: until tensors can be used. strata maps them and torch.load copies them, so the next column is there too.
- read: opened, and every value copied into live tensors of a model and an optimizer.
- verified: every file hashed and compared with the manifest.

In brackets: the row's time as a multiple of strata's. Medians, but for the first column.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import torch
import torch.distributed.checkpoint as distributed_checkpoint
from torch import Tensor

from strata_core.observer import SILENT
from strata_core.training.checkpoint import (
    CheckpointState,
    CheckpointStore,
    checkpoint_fault,
    copy_tensors,
    load_checkpoint,
)

COLUMNS = ("first held up", "held up", "slowed", "written", "opened", "read", "verified")

Seconds = dict[str, float]


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def make_state(size_bytes: int) -> CheckpointState:
    """Weights of a transformer's usual shapes, one third of `size_bytes`, and two moments for each."""
    width = 1024
    block = {"attention": (width, width), "up": (4 * width, width), "down": (width, 4 * width), "norm": (width,)}
    block_bytes = sum(4 * torch.Size(shape).numel() for shape in block.values())
    layers = max(1, size_bytes // 3 // block_bytes)
    model = {
        f"blocks.{layer}.{name}.weight": torch.randn(shape) for layer in range(layers) for name, shape in block.items()
    }
    optimizer = {}
    for name, tensor in model.items():
        optimizer[f"{name}.exp_avg"] = torch.randn_like(tensor)
        optimizer[f"{name}.exp_avg_sq"] = torch.rand_like(tensor)
        optimizer[f"{name}.step"] = torch.tensor(1000.0)
    return CheckpointState({"kind": "lm"}, model, optimizer, {"progress": {"step": 1000}}, None, ())


class Gradients:
    """Stands for a step's forward and backward pass: matrix products that take about a second."""

    def __init__(self) -> None:
        self._matrix = torch.randn(1024, 1024)
        self._products = 1
        self._products = max(1, round(1.0 / min(timed(self.compute) for _ in range(5))))
        self._alone_seconds = min(timed(self.compute) for _ in range(3))

    def compute(self) -> None:
        for _ in range(self._products):
            torch.mm(self._matrix, self._matrix)

    def held_up(self, save: Callable[[], object], before_update: Callable[[], object]) -> Seconds:
        in_save = timed(save)
        computing = timed(self.compute)
        return {"held up": in_save + timed(before_update), "slowed": computing - self._alone_seconds}


def run_strata(
    store: CheckpointStore, state: CheckpointState, step: int, live: dict[str, Tensor], gradients: Gradients
) -> Seconds:
    beside = gradients.held_up(lambda: store.save(2 * step, state), store.wait_for_copy)
    store.wait()
    started = time.perf_counter()
    store.save(2 * step + 1, state)
    store.wait()
    written = time.perf_counter() - started
    path = store.folder / "latest"

    def open_files() -> dict[str, Tensor]:
        loaded = load_checkpoint(path, verify=False)
        return {**loaded.model, **loaded.optimizer}

    return {
        **beside,
        "written": written,
        "verified": timed(lambda: checkpoint_fault(path.resolve(), verify=True)),
        "opened": timed(open_files),
        "read": timed(lambda: copy_tensors(open_files(), live, source=str(path))),
    }


def run_async_save(folder: Path, tensors: dict[str, Tensor], gradients: Gradients) -> Seconds:
    futures: list[Future] = []

    def save() -> None:
        future = distributed_checkpoint.async_save(tensors, checkpoint_id=folder, no_dist=True)
        assert isinstance(future, Future)
        futures.append(future)

    beside = gradients.held_up(save, lambda: None)
    futures.pop().result()
    shutil.rmtree(folder)
    started = time.perf_counter()
    save()
    futures.pop().result()
    written = time.perf_counter() - started
    shutil.rmtree(folder)
    return {**beside, "written": written}


def run_torch_save(path: Path, tensors: dict[str, Tensor], live: dict[str, Tensor]) -> Seconds:
    def write() -> None:
        with open(path, "wb") as file:
            torch.save(tensors, file)
            file.flush()
            os.fsync(file.fileno())

    written = timed(write)
    seconds = {
        "held up": written,
        "slowed": 0.0,
        "written": written,
        "verified": timed(lambda: file_sha256(path)),
        "opened": timed(lambda: torch.load(path)),
        "read": timed(lambda: copy_tensors(torch.load(path), live, source=str(path))),
    }
    path.unlink()
    return seconds


def file_sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def measure(folder: Path, size_bytes: int, repetitions: int) -> tuple[int, dict[str, Seconds]]:
    """The size of the state in bytes, and the seconds of each row by column."""
    state = make_state(size_bytes)
    tensors = {**state.model, **state.optimizer}
    live = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    gradients = Gradients()
    store = CheckpointStore(folder / "strata", keep_last=1, keep_every=0, observer=SILENT)
    records: dict[str, list[Seconds]] = {"strata": [], "distributed async_save": [], "torch.save, torch.load": []}
    for step in range(1, repetitions + 2):
        records["strata"].append(run_strata(store, state, step, live, gradients))
        records["distributed async_save"].append(run_async_save(folder / "distributed", tensors, gradients))
        records["torch.save, torch.load"].append(run_torch_save(folder / "torch.pt", tensors, live))
    rows = {}
    for name, (first, *later) in records.items():
        rows[name] = {column: statistics.median(record[column] for record in later) for column in first}
        rows[name]["first held up"] = first["held up"]
    with_digest = rows["torch.save, torch.load"]["written"] + rows["torch.save, torch.load"]["verified"]
    rows["torch.save and SHA-256"] = {"written": with_digest}
    return sum(tensor.nbytes for tensor in tensors.values()), rows


def print_table(size_bytes: int, rows: dict[str, Seconds]) -> None:
    print(f"checkpoint of {size_bytes / 1e6:,.0f} MB, {torch.get_num_threads()} threads, seconds")
    print(f"{'':24}" + "".join(f"{column:>17}" for column in COLUMNS))
    for name, seconds in rows.items():
        cells = []
        for column in COLUMNS:
            cells.append(f"{seconds[column]:.3f}{_multiple(seconds, rows, column)}" if column in seconds else "-")
        print(f"{name:24}" + "".join(f"{cell:>17}" for cell in cells))


def _multiple(seconds: Seconds, rows: dict[str, Seconds], column: str) -> str:
    return "" if column == "slowed" else f" ({seconds[column] / max(rows['strata'][column], 1e-4):.1f}x)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the state")
    parser.add_argument("--repetitions", type=int, default=5, help="measured after a first one shown apart")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="checkpoint-benchmark-") as folder:
        print_table(*measure(Path(folder), options.megabytes * 1_000_000, options.repetitions))


if __name__ == "__main__":
    main()

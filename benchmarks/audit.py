"""Inspecting and hashing checkpoints against what one would use instead, in one table.

    python benchmarks/audit.py [--megabytes 1000 4000] [--rounds 3] [--peers VENV/bin] [--folder DIR]

Every row is a process of its own on the same file, in turn, from a warm page cache; medians over the rounds. CPU
seconds count start-up; memory is the peak of resident memory. "beyond" takes away what `python -c pass` costs.

picklescan and modelscan look for dangerous names only, and torch.load(mmap=True) only opens the file, so they stand
against a plain inspection; the scan with --stats (NaN, Inf, range, norm and CRC of every element) has no counterpart
and is told as a rate. The hashes are of two files of the size: sha256sum, hashlib.file_digest on one core, and
strata_core.manifest.hash_files on one and on two. Peers that are not installed in the folder given as --peers (or
beside this Python) are left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INSPECT = (
    "import sys; from strata_core.audit import inspect_checkpoint as i; r = i(sys.argv[1]{}); assert r.verdict == 'ok'"
)
LOAD = "import sys, torch; torch.load(sys.argv[1], mmap=True, weights_only=True)"
DIGEST = "import sys, hashlib\nfor name in sys.argv[1:]:\n with open(name, 'rb') as f: hashlib.file_digest(f, 'sha256')"
HASH_FILES = (
    "import sys, os; from strata_core.manifest import hash_files\n"
    "hash_files(os.path.dirname(sys.argv[1]), [os.path.basename(n) for n in sys.argv[1:]], workers={})"
)


@dataclass(frozen=True)
class Row:
    """One contestant: the command, and the bytes it has to read, None where there are none."""

    name: str
    command: Sequence[str]
    read_bytes: int | None = None


@dataclass(frozen=True)
class Cost:
    """Of one process: wall-clock and CPU seconds, peak resident bytes."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def cost_of(command: Sequence[str]) -> Cost:
    """Runs a command to its end. A scanner's exit status tells of its verdict, so it is not looked at."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        statistics.median(cost.cpu_seconds for cost in costs),
        round(statistics.median(cost.peak_bytes for cost in costs)),
    )


def write_checkpoints(folder: Path, megabytes: int) -> list[Path]:
    """Two checkpoints of 16 MB matrices, in a process of its own, so that this one stays small (see ru_maxrss)."""
    paths = [folder / f"{megabytes}-{number}.pt" for number in range(2)]
    code = (
        "import sys, torch\n"
        "count = max(1, int(sys.argv[1]) // 16)\n"
        "for seed, path in enumerate(sys.argv[2:]):\n"
        " torch.manual_seed(seed)\n"
        " torch.save({f'layers.{n}.weight': torch.randn(1000, 4000) for n in range(count)}, path)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(megabytes), *map(str, paths)], check=True)
    return paths


def rows(paths: list[Path], peers: Path) -> list[Row]:
    """All contestants on these files."""
    first, both = str(paths[0]), [str(path) for path in paths]
    size, total = paths[0].stat().st_size, sum(path.stat().st_size for path in paths)
    python = sys.executable
    table = [
        Row("strata inspect", [python, "-c", INSPECT.format(""), first]),
        Row("torch.load(mmap=True)", [python, "-c", LOAD, first]),
        Row("picklescan", [str(peers / "picklescan"), "-p", first]),
        Row("modelscan", [str(peers / "modelscan"), "-p", first]),
        Row("strata inspect --stats", [python, "-c", INSPECT.format(", stats=True"), first], size),
        Row("sha256sum", ["sha256sum", *both], total),
        Row("hashlib.file_digest", [python, "-c", DIGEST, *both], total),
        Row("strata hash_files, 1 worker", [python, "-c", HASH_FILES.format(1), *both], total),
        Row("strata hash_files, 2 workers", [python, "-c", HASH_FILES.format(2), *both], total),
    ]
    return [row for row in table if shutil.which(row.command[0])]


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    idle = median([cost_of([sys.executable, "-c", "pass"]) for _ in range(5)])
    print(f"{'':30} {'MB':>6} {'wall s':>8} {'CPU s':>8} {'beyond':>8} {'MiB':>7} {'beyond':>7} {'GB/s a core':>12}")
    for megabytes in options.megabytes:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            contestants = rows(write_checkpoints(Path(name), megabytes), options.peers)
            costs: dict[str, list[Cost]] = {row.name: [] for row in contestants}
            for _ in range(options.rounds):
                for row in contestants:
                    costs[row.name].append(cost_of(row.command))
            for row in contestants:
                print_row(row, megabytes, median(costs[row.name]), idle)


def print_row(row: Row, megabytes: int, cost: Cost, idle: Cost) -> None:
    """One line of the table."""
    beyond_seconds = cost.cpu_seconds - idle.cpu_seconds
    rate = f"{row.read_bytes / 1e9 / beyond_seconds:12.2f}" if row.read_bytes else ""
    print(
        f"{row.name:30} {megabytes:6} {cost.seconds:8.2f} {cost.cpu_seconds:8.2f} {beyond_seconds:8.2f} "
        f"{cost.peak_bytes / 2**20:7.0f} {(cost.peak_bytes - idle.peak_bytes) / 2**20:7.0f} {rate}",
        flush=True,
    )


if __name__ == "__main__":
    main()

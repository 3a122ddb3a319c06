"""JSON Lines to token shards: strata against a Megatron-style preprocessing pool, in one table.

    python benchmarks/corpus.py [--megabytes 20 200] [--pool-megabytes 20] [--rounds 3] [--workers 2]

The peer is what preprocessing scripts in the manner of Megatron-LM do: a multiprocessing.Pool that gets one line at a
time, parses it and encodes it with Hugging Face `tokenizers`, while the parent appends the ids to a file. Its rate does
not depend on the size, so it only gets sizes up to --pool-megabytes; larger ones are compared with its rate there.

Everything runs in processes of its own, in turn, from the same file with the same tokenizer; seconds are wall-clock
with start-up, medians over the rounds. Memory is the peak of the resident sizes of the process tree, summed, the
largest of the rounds. The input is the text of python-topics over and over with words replaced at random; all
contestants have to write the same tokens.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from strata_core.corpus.sources.samples import sample_documents
from strata_core.corpus.text.tokenizer import train_tokenizer

POOL = "Pool, tokenizers"

# Set in each worker of the peer's pool.
pool_tokenizer: Any = None
pool_end_of_text = 0
_SECONDS_BETWEEN_SAMPLES = 0.02


def documents(size_bytes: int, seed: int = 1) -> Iterator[str]:
    """Real documents, one word in ten replaced by one of 200,000 made-up ones, until there is enough."""
    generator = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    made_up = ["".join(generator.choices(letters, k=generator.randint(3, 11))) for _ in range(200_000)]
    topics = [topic.split(" ") for topic in sample_documents("python-topics")]
    written = 0
    while written < size_bytes:
        words = list(generator.choice(topics))
        for at in generator.sample(range(len(words)), len(words) // 10):
            words[at] = generator.choice(made_up)
        text = " ".join(words)
        written += len(text)
        yield text


def write_input(path: Path, size_bytes: int) -> None:
    with open(path, "w") as file:
        for text in documents(size_bytes):
            file.write(json.dumps({"text": text}) + "\n")


def pool_encode(line: str) -> list[int]:
    return [*pool_tokenizer.encode(json.loads(line)["text"]).ids, pool_end_of_text]


def pool_start(tokenizer: str) -> None:
    global pool_tokenizer, pool_end_of_text
    from tokenizers import Tokenizer

    pool_tokenizer = Tokenizer.from_file(tokenizer)
    pool_end_of_text = pool_tokenizer.token_to_id("<|endoftext|>")


def run_pool(source: str, out: str, tokenizer: str, workers: int) -> None:
    lengths = []
    with (
        multiprocessing.Pool(workers, pool_start, (tokenizer,)) as pool,
        open(source, encoding="utf-8") as lines,
        open(out + ".bin", "wb") as tokens,
    ):
        for ids in pool.imap(pool_encode, lines, chunksize=25):
            tokens.write(np.array(ids, dtype=np.uint16).tobytes())
            lengths.append(len(ids))
    np.cumsum([0, *lengths]).astype(np.uint64).tofile(out + ".idx")


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak_bytes: int
    tokens_sha256: str


def measure(command: list[str], token_files: Path, pattern: str) -> Measured:
    """Runs a command, watching the memory of its process tree, and hashes the tokens it wrote."""
    started = time.perf_counter()
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "TOKENIZERS_PARALLELISM": "false"})
    peak_bytes = 0
    while process.poll() is None:
        peak_bytes = max(peak_bytes, tree_bytes(process))
        time.sleep(_SECONDS_BETWEEN_SAMPLES)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    digest = hashlib.sha256()
    for path in sorted(token_files.glob(pattern)):
        digest.update(path.read_bytes())
    return Measured(seconds, peak_bytes, digest.hexdigest())


def tree_bytes(process: psutil.Process) -> int:
    total_bytes = 0
    try:
        for one in [process, *process.children(recursive=True)]:
            total_bytes += one.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total_bytes


def contestants(folder: Path, source: Path, workers: int, *, with_pool: bool) -> dict[str, tuple[list[str], str]]:
    """For each row its command and where its tokens will be, relative to the folder."""
    tokenizer = folder / "tokenizer.json"
    rows = {}
    if with_pool:
        arguments = ["--run-pool", str(source), str(folder / "pool"), str(tokenizer), str(workers)]
        rows[POOL] = ([sys.executable, __file__, *arguments], "pool.bin")
    backends = ["tokenizers", *(["fast"] if importlib.util.find_spec("gigatoken") else [])]
    for backend in backends:
        command = [sys.executable, "-m", "strata_cli", "prepare-corpus", str(source), "--quiet"]
        command += ["--out", str(folder / backend), "--tokenizer", str(tokenizer), "--val-fraction", "0"]
        command += ["--workers", str(workers), "--backend", backend]
        rows[f"strata, {backend}"] = (command, f"{backend}/*.bin")
    return rows


def run_size(folder: Path, megabytes: int, arguments: argparse.Namespace) -> dict[str, list[Measured]]:
    source = folder / f"{megabytes}.jsonl"
    write_input(source, megabytes * 1_000_000)
    rows = contestants(folder, source, arguments.workers, with_pool=megabytes <= arguments.pool_megabytes)
    found: dict[str, list[Measured]] = {name: [] for name in rows}
    for _ in range(arguments.rounds):
        for name, (command, pattern) in rows.items():
            found[name].append(measure(command, folder, pattern))
            for backend in ("fast", "tokenizers"):
                shutil.rmtree(folder / backend, ignore_errors=True)
    source.unlink()
    if len({one.tokens_sha256 for row in found.values() for one in row}) != 1:
        raise SystemExit("the contestants wrote different tokens")
    return found


def show(megabytes: int, found: dict[str, list[Measured]], pool_rate: float) -> float:
    """Prints the rows of one size and returns the peer's rate, in megabytes a second."""
    rates = {name: megabytes / statistics.median(one.seconds for one in row) for name, row in found.items()}
    pool_rate = rates.get(POOL, pool_rate)
    for name, row in found.items():
        times = f"{rates[name] / pool_rate:6.1f}" if pool_rate else "     -"
        peak = max(one.peak_bytes for one in row) / 1e6
        print(f"{megabytes:8d}  {name:<20}  {megabytes / rates[name]:8.2f}  {rates[name]:7.1f}  {times}  {peak:8.0f}")
    return pool_rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[20, 200], help="sizes of the input")
    parser.add_argument("--pool-megabytes", type=int, default=20, help="the largest size that the peer gets")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--folder", type=Path, help="where to put input and output; a temporary place by default")
    parser.add_argument("--run-pool", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run_pool:
        source, out, tokenizer, workers = arguments.run_pool
        run_pool(source, out, tokenizer, int(workers))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        folder = Path(place)
        (folder / "tokenizer.json").write_bytes(train_tokenizer(documents(4_000_000, seed=2), arguments.vocab_size))
        print(f"{'MB':>8}  {'':<20}  {'seconds':>8}  {'MB/s':>7}  {'x Pool':>6}  {'peak MB':>8}")
        pool_rate = 0.0
        for megabytes in sorted(arguments.megabytes):
            pool_rate = show(megabytes, run_size(folder, megabytes, arguments), pool_rate)


if __name__ == "__main__":
    main()

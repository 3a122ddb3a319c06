"""Hashing files: digests, order, what is refused, what is noticed."""

from __future__ import annotations

import hashlib
import os
import resource
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from strata_core.errors import DataError
from strata_core.manifest import FileEntry, hash_file, hash_files
from strata_core.manifest.hashing import BUFFER_BYTES, HashJob, run_hash_jobs


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("size", [0, 1, BUFFER_BYTES - 1, BUFFER_BYTES, BUFFER_BYTES + 1, 3 * BUFFER_BYTES])
def test_an_entry_has_the_name_size_and_sha256_of_the_file(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    path = write(tmp_path, "file", content)
    assert hash_file(path, name="given/name") == FileEntry("given/name", size, hashlib.sha256(content).hexdigest())


def test_the_digest_agrees_with_sha256sum(tmp_path: Path) -> None:
    path = write(tmp_path, "file", os.urandom(700_001))
    printed = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout
    assert hash_file(path, name="file").sha256 == printed.split()[0]


def test_the_beginning_of_a_growing_file_can_be_hashed(tmp_path: Path) -> None:
    path = write(tmp_path, "log", b"first\nsecond\n")
    assert hash_file(path, name="log", first_bytes=6) == FileEntry("log", 6, hashlib.sha256(b"first\n").hexdigest())
    with pytest.raises(DataError, match="13 read"):
        hash_file(path, name="log", first_bytes=14)


def test_files_come_sorted_whatever_the_order_and_the_number_of_workers(tmp_path: Path) -> None:
    names = ["b", "a/z", "a-", "Z", "é", "a/b"]
    for name in names:
        write(tmp_path, name, name.encode())
    one = hash_files(tmp_path, names, workers=1)
    assert [entry.path for entry in one] == ["Z", "a-", "a/b", "a/z", "b", "é"]
    assert hash_files(tmp_path, reversed(names), workers=4) == one


def test_progress_adds_up_to_the_bytes_hashed_and_comes_from_one_thread_at_a_time(tmp_path: Path) -> None:
    sizes = {f"f{index}": 100_000 * index for index in range(8)}
    for name, size in sizes.items():
        write(tmp_path, name, bytes(size))
    inside = threading.Lock()
    told = []

    def progress(count: int) -> None:
        assert inside.acquire(blocking=False)
        told.append(count)
        inside.release()

    hash_files(tmp_path, sizes, workers=4, progress=progress)
    assert sum(told) == sum(sizes.values())


@pytest.mark.parametrize("kind", ["missing", "folder", "link", "fifo", "socket"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(write(tmp_path, "target", b"content"))
    elif kind == "fifo":
        os.mkfifo(path)  # opening it would wait for a writer for ever
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    with pytest.raises(DataError, match=str(path)):
        hash_file(path, name="x")


def test_a_file_that_grows_while_it_is_hashed_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "file", bytes(4 * BUFFER_BYTES))

    def append(_: int) -> None:
        with open(path, "ab") as file:
            file.write(b"more")

    with pytest.raises(DataError, match="changed while it was hashed"):
        hash_file(path, name="file", progress=append)


def test_a_file_that_is_overwritten_in_place_while_it_is_hashed_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "file", bytes(2 * BUFFER_BYTES))
    os.utime(path, ns=(0, 0))

    def overwrite(_: int) -> None:
        with open(path, "r+b") as file:
            file.write(b"x")

    with pytest.raises(DataError, match="changed while it was hashed"):
        hash_file(path, name="file", progress=overwrite)


def test_a_file_that_is_replaced_while_it_is_hashed_is_an_error(tmp_path: Path) -> None:
    path, other = write(tmp_path, "file", bytes(BUFFER_BYTES)), write(tmp_path, "other", bytes(BUFFER_BYTES))
    with pytest.raises(DataError, match="changed while it was hashed"):
        hash_file(path, name="file", progress=lambda _: os.path.exists(other) and os.replace(other, path))


def test_one_bad_file_among_many_is_named(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path, name, b"content")
    with pytest.raises(DataError, match="gone"):
        hash_files(tmp_path, ["a", "b", "gone", "c"])


def test_stopping_early_ends_the_threads(tmp_path: Path) -> None:
    names = [f"f{index}" for index in range(20)]
    for name in names:
        write(tmp_path, name, bytes(BUFFER_BYTES))
    outcomes = run_hash_jobs([HashJob(tmp_path / name, name) for name in names], workers=2)
    next(outcomes)
    before = threading.active_count()
    outcomes.close()
    assert threading.active_count() < before


def test_many_files_need_few_open_ones_and_little_memory(tmp_path: Path) -> None:
    for index in range(2000):
        write(tmp_path, f"{index % 20}/{index}", b"%d" % index)
    big = write(tmp_path, "big", b"")
    os.truncate(big, 256 << 20)
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from strata_core.manifest import hash_files\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "names = [str(p.relative_to(sys.argv[1])) for p in Path(sys.argv[1]).rglob('*') if p.is_file()]\n"
        "print(len(hash_files(sys.argv[1], names, workers=16)))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    count, grown_kib = map(int, done.stdout.split())
    assert count == 2001
    assert grown_kib < 64 * 1024
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64

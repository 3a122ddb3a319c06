"""SHA-256 of files, several at a time, refusing whatever is not a regular file or does not hold still."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from strata_core.errors import DataError
from strata_core.manifest.regular_file import open_regular_file

BUFFER_BYTES = 1 << 18
"""What a thread holds while it hashes. Larger ones leave the processor's cache and are slower."""

_MOST_WORKERS = 16

Progress = Callable[[int], None]
"""Told the number of bytes hashed since it was told last; one call at a time, from the hashing threads."""


@dataclass(frozen=True)
class FileEntry:
    """A file as a manifest lists it.

    Attributes:
        path: relative to the manifest's folder, forward slashes.
        size: in bytes.
        sha256: 64 lower-case hexadecimal digits.
    """

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class HashJob:
    """A file to hash.

    Attributes:
        path: where it is.
        name: the path that its entry gets.
        first_bytes: how much to hash of a file that may grow; None for a whole file, which must hold still.
    """

    path: Path
    name: str
    first_bytes: int | None = None


def hash_file(
    path: str | os.PathLike[str],
    *,
    name: str,
    first_bytes: int | None = None,
    progress: Progress | None = None,
) -> FileEntry:
    """Hashes one regular file, or its beginning; links are not followed and special files are not opened.

    Args:
        path: where the file is.
        name: the path that its entry gets.
        first_bytes: as in `HashJob`.
        progress: see `Progress`.

    Raises:
        DataError: it is absent, unreadable, no regular file, or it changed while it was read (which includes
            having fewer than `first_bytes`).
    """
    with open_regular_file(path) as descriptor:
        before = os.fstat(descriptor)
        wanted_bytes = before.st_size if first_bytes is None else first_bytes
        digest, read_bytes = _digest(descriptor, wanted_bytes, progress)
        after, named = os.fstat(descriptor), os.lstat(path)
    held_still = before.st_size == after.st_size and before.st_mtime_ns == after.st_mtime_ns
    same_file = before.st_dev == named.st_dev and before.st_ino == named.st_ino
    if read_bytes != wanted_bytes or not same_file or not (held_still or first_bytes is not None):
        raise DataError(
            f"{os.fspath(path)}: changed while it was hashed ({wanted_bytes:,} bytes, {read_bytes:,} read)",
            hint="wait until nothing writes there",
        )
    return FileEntry(name, read_bytes, digest)


def _digest(descriptor: int, limit_bytes: int, progress: Progress | None) -> tuple[str, int]:
    """The digest of the first bytes of a file, and how many there were."""
    sha256, buffer, total_bytes = hashlib.sha256(), memoryview(bytearray(BUFFER_BYTES)), 0
    while total_bytes < limit_bytes:
        room = buffer[: limit_bytes - total_bytes]
        count = os.readv(descriptor, [room])
        if count == 0:
            break
        sha256.update(room[:count])
        total_bytes += count
        if progress is not None:
            progress(count)
    return sha256.hexdigest(), total_bytes


def hash_files(
    folder: str | os.PathLike[str],
    names: Iterable[str],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[FileEntry]:
    """Hashes files of one folder in parallel; the order of `names` and the number of workers change nothing.

    Args:
        folder: where they are.
        names: paths relative to it, forward slashes.
        workers: threads; None for one a processor.
        progress: see `Progress`.

    Returns:
        One entry a name, sorted by path (by code points, which is the order of the UTF-8 bytes).

    Raises:
        DataError: as `hash_file`, for the first such file in that order.
    """
    jobs = [HashJob(Path(folder, name), name) for name in sorted(names)]
    entries = []
    for outcome in run_hash_jobs(jobs, workers=workers, progress=progress):
        if isinstance(outcome, DataError):
            raise outcome
        entries.append(outcome)
    return entries


def run_hash_jobs(
    jobs: Sequence[HashJob], *, workers: int | None = None, progress: Progress | None = None
) -> Iterator[FileEntry | DataError]:
    """Hashes files in parallel; yields, in the order of the jobs, each entry or what was wrong with the file.

    When the caller stops early (an error, an interrupt) the threads stop within one buffer.
    """
    lock, stopped = threading.Lock(), threading.Event()

    def told(count: int) -> None:
        if stopped.is_set():
            raise DataError("hashing was stopped")
        if progress is not None:
            with lock:
                progress(count)

    def outcome(job: HashJob) -> FileEntry | DataError:
        try:
            return hash_file(job.path, name=job.name, first_bytes=job.first_bytes, progress=told)
        except DataError as error:
            return error

    with ThreadPoolExecutor(workers or _available_workers()) as pool:
        try:
            yield from pool.map(outcome, jobs)
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


def _available_workers() -> int:
    """One thread a processor that this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, _MOST_WORKERS)

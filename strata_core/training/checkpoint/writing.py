"""Writes the files of a checkpoint folder, side by side, and takes their digests from memory meanwhile."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from strata_core.files import storage_errors
from strata_core.manifest import FileEntry
from strata_core.training.checkpoint.faults import fault_point

_CHUNK_BYTES = 16 << 20
_DIRECT = getattr(os, "O_DIRECT", 0)


@dataclass(frozen=True)
class FileContents:
    """What a file will hold: the first `size_bytes` of `data`.

    `in_blocks` says that `data` is page-aligned and padded to whole blocks, so that it can be written past the page
    cache.
    """

    data: memoryview
    size_bytes: int
    in_blocks: bool = False

    @classmethod
    def of(cls, data: bytes) -> FileContents:
        """The contents of a small file."""
        return cls(memoryview(data), len(data))


def write_files(folder: Path, contents: Mapping[str, FileContents], *, shown_as: Path) -> list[FileEntry]:
    """Writes and syncs new files, each in a thread of its own beside one that hashes it.

    Args:
        folder: where to.
        contents: what each file will hold, by file name.
        shown_as: the folder to name in an error (the one that the reader will look for).

    Returns:
        Name, size and SHA-256 of each file, sorted by name.

    Raises:
        StorageError: the file system refused; what was written stays for the caller to remove.
    """
    names = sorted(contents)
    with ThreadPoolExecutor(max_workers=2 * len(names), thread_name_prefix="checkpoint-file") as pool:
        writes = [pool.submit(_write_file, folder / name, contents[name], shown_as / name) for name in names]
        digests = [pool.submit(_sha256, contents[name]) for name in names]
        for write in writes:
            write.result()
        return [
            FileEntry(path=name, size=contents[name].size_bytes, sha256=digest.result())
            for name, digest in zip(names, digests, strict=True)
        ]


def _sha256(contents: FileContents) -> str:
    return hashlib.sha256(contents.data[: contents.size_bytes]).hexdigest()


def _write_file(path: Path, contents: FileContents, shown_as: Path) -> None:
    with storage_errors(shown_as, wanted_bytes=contents.size_bytes):
        descriptor = _open_new(path, past_cache=contents.in_blocks)
        try:
            _write_chunks(descriptor, contents.data, path.name)
            os.ftruncate(descriptor, contents.size_bytes)
            fault_point(f"{path.name} written")
            os.fsync(descriptor)
            fault_point(f"{path.name} synced")
        except OSError as error:
            error.filename = os.fspath(shown_as)
            raise
        finally:
            os.close(descriptor)


def _open_new(path: Path, *, past_cache: bool) -> int:
    """Opens for writing, past the page cache where asked for and possible: that saves a copy, and leaves the cache to
    what training reads."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    if past_cache and _DIRECT:
        try:
            return os.open(path, flags | _DIRECT, 0o644)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            path.unlink(missing_ok=True)
    return os.open(path, flags, 0o644)


def _write_chunks(descriptor: int, data: memoryview, name: str) -> None:
    position = 0
    while position < len(data):
        try:
            position += os.pwrite(descriptor, data[position : position + _CHUNK_BYTES], position)
        except OSError as error:
            if error.errno != errno.EINVAL or not _leave_direct_mode(descriptor):
                raise
        fault_point(f"{name} chunk")


def _leave_direct_mode(descriptor: int) -> bool:
    """Goes on through the page cache (a short write left the position unaligned, or the device wants larger blocks).

    Returns:
        Whether the descriptor was writing past the cache until now.
    """
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    if not flags & _DIRECT:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~_DIRECT)
    return True

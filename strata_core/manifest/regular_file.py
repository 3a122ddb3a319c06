"""Opening a path only when it is a regular file: a link, a FIFO or a device put in its place is refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strata_core.errors import DataError

LARGEST_MANIFEST_BYTES = 64 << 20


@contextmanager
def open_regular_file(path: str | os.PathLike[str]) -> Iterator[int]:
    """The descriptor of a regular file, open for reading; also turns OSErrors met while it is in use.

    Raises:
        DataError: absent, unreadable, or no regular file.
    """
    descriptor = -1
    try:
        _check_regular(path, os.lstat(path))
        # The path may be swapped between the two calls: a FIFO must not block, a link not lead elsewhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        _check_regular(path, os.fstat(descriptor))
        yield descriptor
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _check_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{os.fspath(path)}: {kind_of(status)}, not a regular file")


def kind_of(status: os.stat_result) -> str:
    """What a path is: "a file", "a folder", "a link" or "a special file"."""
    for test, kind in ((stat.S_ISREG, "a file"), (stat.S_ISDIR, "a folder"), (stat.S_ISLNK, "a link")):
        if test(status.st_mode):
            return kind
    return "a special file"


def read_manifest_file(path: Path) -> bytes:
    """A whole file of at most 64 MiB.

    Raises:
        DataError: absent, unreadable, no regular file, or larger.
    """
    with open_regular_file(path) as descriptor:
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > LARGEST_MANIFEST_BYTES:
            raise DataError(
                f"{path}: not a manifest: {size_bytes:,} bytes, where {LARGEST_MANIFEST_BYTES:,} is the most"
            )
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_MANIFEST_BYTES)

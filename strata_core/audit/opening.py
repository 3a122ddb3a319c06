"""Opening files that somebody else made: regular files only, by position, and never outside the place given."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType

from strata_core.audit.findings import Malformed, printable
from strata_core.errors import DataError, UsageError

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
}
_CHUNK_BYTES = 1 << 20


class FileBytes:
    """A run of bytes of an open file (or of memory), addressed from its own start. Parts share the source of the whole.

    `name` is how messages call it. Not closed here: the `Opened` that made the descriptor closes it.
    """

    __slots__ = ("_read_at", "_start", "length", "name")

    def __init__(self, read_at: Callable[[int, int], bytes], start: int, length: int, name: str) -> None:
        self._read_at = read_at
        self._start = start
        self.length = length
        self.name = name

    @classmethod
    def of_memory(cls, data: bytes, name: str) -> FileBytes:
        """Bytes that are held already."""
        return cls(lambda size, position: data[position : position + size], 0, len(data), name)

    def read(self, position: int, size: int) -> bytes:
        """Exactly `size` bytes from `position`.

        Raises:
            Malformed: they reach past the end, or the file shrank.
        """
        if position < 0 or size < 0 or position + size > self.length:
            raise Malformed(
                f"{self.name}: {size:,} bytes are announced at byte {position:,}, but it ends at byte {self.length:,}"
            )
        data = self._read_once(size, position)
        while len(data) < size:
            more = self._read_once(size - len(data), position + len(data))
            if not more:
                raise Malformed(f"{self.name}: it ended at byte {position + len(data):,} while it was read")
            data += more
        return data

    def _read_once(self, size: int, position: int) -> bytes:
        try:
            return self._read_at(size, self._start + position)
        except OSError as error:
            raise Malformed(f"{self.name}: it cannot be read at byte {position:,}: {error.strerror}") from error

    def head(self, size: int) -> bytes:
        """The first `size` bytes, or all there are."""
        return self.read(0, min(size, self.length))

    def chunks(self, position: int, size: int) -> Iterator[bytes]:
        """The same bytes as `read`, in pieces of at most 1 MiB."""
        end = position + size
        while position < end:
            step = min(_CHUNK_BYTES, end - position)
            yield self.read(position, step)
            position += step

    def part(self, position: int, size: int, name: str) -> FileBytes:
        """The `size` bytes from `position` as bytes of their own.

        Raises:
            Malformed: they reach past the end.
        """
        if position < 0 or size < 0 or position + size > self.length:
            raise Malformed(
                f"{name}: {size:,} bytes are announced at byte {position:,} of {self.name}, "
                f"which has {self.length:,} bytes"
            )
        return FileBytes(self._read_at, self._start + position, size, name)


class Opened:
    """Files and folders opened for one inspection. A context manager: leaving it closes them all."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def __enter__(self) -> Opened:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()

    def file(self, path: Path) -> FileBytes:
        """The file at a path that the user named (links on the way to it are followed).

        Raises:
            DataError: it is no regular file, or may not be read.
        """
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise DataError(f"{path} is {kind_of(mode)}, not a file; it was not opened")
        try:
            descriptor = os.open(path, _FLAGS)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        return self._keep(descriptor, str(path))

    def folder(self, path: Path) -> Folder:
        """The folder at a path that the user named.

        Raises:
            DataError: it may not be read.
        """
        try:
            descriptor = os.open(path, _FLAGS | os.O_DIRECTORY)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        self._descriptors.append(descriptor)
        return Folder(self, descriptor, "")

    def _keep(self, descriptor: int, name: str) -> FileBytes:
        self._descriptors.append(descriptor)
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise DataError(f"{name} is {kind_of(state.st_mode)}, not a file; nothing was read from it")
        return FileBytes(partial(os.pread, descriptor), 0, state.st_size, name)


class Folder:
    """An open folder. Its entries are reached by plain name, links are never followed."""

    def __init__(self, opened: Opened, descriptor: int, prefix: str) -> None:
        self._opened = opened
        self._descriptor = descriptor
        self._prefix = prefix

    def names(self) -> list[str]:
        """The names in the folder, sorted."""
        return sorted(os.listdir(self._descriptor))

    def kind(self, name: str) -> str | None:
        """ "file", "folder", another kind in words ("a symbolic link"), or None when nothing has that name."""
        if not is_plain_name(name):
            return None
        try:
            mode = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode
        except OSError:
            return None
        if stat.S_ISREG(mode):
            return "file"
        return "folder" if stat.S_ISDIR(mode) else kind_of(mode)

    def size_bytes(self, name: str) -> int:
        """The size of an entry that exists."""
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_size

    def link_target(self, name: str) -> str | None:
        """The text of a symbolic link, or None when it is no link."""
        if self.kind(name) != _KINDS[stat.S_IFLNK]:
            return None
        return os.readlink(name, dir_fd=self._descriptor)

    def file(self, name: str) -> FileBytes:
        """An entry that is a regular file.

        Raises:
            Malformed: the name leads elsewhere, is missing, or is no regular file.
        """
        self._expect(name, "file")
        shown = self._prefix + name
        try:
            descriptor = os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=self._descriptor)
        except OSError as error:
            raise Malformed(f"{printable(shown)} cannot be read: {error.strerror}") from error
        return self._opened._keep(descriptor, shown)

    def folder(self, name: str) -> Folder:
        """An entry that is a folder.

        Raises:
            Malformed: the name leads elsewhere, is missing, or is no folder.
        """
        self._expect(name, "folder")
        try:
            descriptor = os.open(name, _FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._descriptor)
        except OSError as error:
            raise Malformed(f"{printable(self._prefix + name)} cannot be read: {error.strerror}") from error
        self._opened._descriptors.append(descriptor)
        return Folder(self._opened, descriptor, f"{self._prefix}{name}/")

    def _expect(self, name: str, wanted: str) -> None:
        shown = printable(self._prefix + name)
        if not is_plain_name(name):
            raise Malformed(f"{printable(name)!r} leads out of the folder; it was not opened")
        found = self.kind(name)
        if found is None:
            raise Malformed(f"{shown} is missing")
        if found != wanted:
            raise Malformed(f"{shown} is {found}, not a {wanted}; it was not opened")


def is_plain_name(name: str) -> bool:
    """Whether a name stays in its folder on every system: no separators, drives, NULs, dots alone."""
    return bool(name) and name not in {".", ".."} and not any(character in name for character in "/\\\0:")


def kind_of(mode: int) -> str:
    """What a file mode stands for, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "a special file")


def check_exists(path: Path) -> None:
    """
    Raises:
        UsageError: there is nothing at the path.
    """
    if not os.path.lexists(path):
        raise UsageError(f"{path}: there is no such file or folder", hint="check the path")
    if not path.exists():
        raise UsageError(f"{path} is a symbolic link that leads nowhere", hint="check the path")

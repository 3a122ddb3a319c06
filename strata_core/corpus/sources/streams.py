"""The bytes of an input file, taken out of gzip or zstandard, with a digest of the file as it lies there."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from strata_core.corpus.format import SourceInfo
from strata_core.corpus.sources.files import InputFile
from strata_core.errors import DataError

_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_BUFFER_BYTES = 1 << 18
_ZSTD_FEED_BYTES = 1 << 12
"""Small, because a few bytes of zstandard can stand for a block of 128 KiB."""


class Stream:
    """An open input file.

    Attributes:
        content: the decompressed bytes, buffered; reading it raises whatever the decompressor raises.
        file: what is read.
    """

    def __init__(self, file: InputFile, raw: _CountingFile, content: io.BufferedReader) -> None:
        self.file = file
        self.content = content
        self._raw = raw

    @property
    def position_bytes(self) -> int:
        """How much of the file has been read, before decompression."""
        return self._raw.size

    def finish(self) -> SourceInfo:
        """What was read; to be asked for when `content` is at its end."""
        return SourceInfo(self.file.name, self._raw.size, self._raw.sha256.hexdigest())


@contextmanager
def open_stream(file: InputFile) -> Iterator[Stream]:
    """Opens an input file; faults met while it is read in the body come out as errors of strata.

    Raises:
        DataError: it cannot be read, its content is not what its name says, or the compressed data are damaged.
    """
    try:
        with open(file.path, "rb", buffering=0) as opened:
            raw = _CountingFile(opened)
            buffered = io.BufferedReader(raw, _BUFFER_BYTES)
            compression = _check_content(file, buffered.peek(4)[:4])
            yield Stream(file, raw, _decompressed(buffered, compression))
    except EOFError:
        raise DataError(f"{file.shown}: the gzip data end inside a member: the file has been cut short") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{file.shown}: the gzip data are damaged: {error}") from None
    except _ZstdFault as error:
        raise DataError(f"{file.shown}: {error}") from None
    except OSError as error:
        if error.filename not in (None, file.path, str(file.path)):
            raise
        raise DataError(f"{file.shown}: cannot be read: {error.strerror or error}") from error


def _check_content(file: InputFile, start: bytes) -> str:
    """The compression to undo, by name and content; they have to agree where there is a name."""
    by_content = next((name for name, magic in _MAGIC.items() if start.startswith(magic)), "none")
    if file.compression == "by-content":
        return by_content
    if file.compression != by_content:
        if file.compression == "none":
            found = f"is {by_content}, which the name does not say"
        else:
            found = f"is not {file.compression} although the name says so"
        begins = f"begins with bytes {start.hex(' ')}" if start else "is empty"
        raise DataError(
            f"{file.shown}: the content {found}: it {begins}",
            hint="rename the file after what it holds, or get it again",
        )
    return by_content


def _decompressed(buffered: Any, compression: str) -> io.BufferedReader:
    if compression == "gzip":
        return io.BufferedReader(gzip.GzipFile(fileobj=buffered), _BUFFER_BYTES)  # type: ignore[type-var]
    if compression == "zstd":
        return io.BufferedReader(_ZstdFrames(buffered), _BUFFER_BYTES)
    return buffered


class _CountingFile(io.RawIOBase):
    """A file that keeps count and digest of what is read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file: Any = file
        self.size = 0
        self.sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._file.readinto(buffer)
        self.sha256.update(memoryview(buffer)[:count])
        self.size += count
        return count


class _ZstdFault(Exception):
    """Zstandard data that cannot be decompressed."""


class _ZstdFrames(io.RawIOBase):
    """The content of all zstandard frames of a file. The library's own reader takes a cut frame for a whole one."""

    def __init__(self, source: IO[bytes]) -> None:
        import zstandard

        self._source = source
        self._library = zstandard
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._fed = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._source.read(_ZSTD_FEED_BYTES)
            if not data:
                if self._fed:
                    raise _ZstdFault("the zstandard data end inside a frame: the file has been cut short")
                return 0
            self._ready = memoryview(self._decompress(data))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _decompress(self, data: bytes) -> bytes:
        pieces = []
        try:
            while data:
                pieces.append(self._frame.decompress(data))
                self._fed = not self._frame.eof
                data = self._frame.unused_data
                if self._frame.eof:
                    self._frame = self._library.ZstdDecompressor().decompressobj()
        except self._library.ZstdError as error:
            raise _ZstdFault(f"the zstandard data are damaged: {error}") from None
        return b"".join(pieces)

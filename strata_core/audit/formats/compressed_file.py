"""Compressed files (gzip, zlib, bzip2, xz, lzma), as joblib writes them: unpacked in bounded memory and read on."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any

from strata_core.audit.findings import Malformed
from strata_core.audit.opening import FileBytes
from strata_core.audit.reading import Budget, Contents

_PIECE_BYTES = 1 << 20


class _Inflater:
    """zlib's objects with the interface that bz2's and lzma's have."""

    def __init__(self, window: int) -> None:
        self._inner = zlib.decompressobj(window)

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, most)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


_KINDS: tuple[tuple[str, bytes, Callable[[], Any]], ...] = (
    ("gzip", b"\x1f\x8b\x08", lambda: _Inflater(31)),
    ("bzip2", b"BZh", bz2.BZ2Decompressor),
    ("xz", b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=128 << 20)),
    ("lzma", b"]\0\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=128 << 20)),
)
_ZLIB = ("zlib", lambda: _Inflater(15))


def compression_of(file: FileBytes) -> tuple[str, Callable[[], Any]] | None:
    """How a file is compressed, by its first bytes, and a maker of its decompressor."""
    head = file.head(8)
    for name, signature, make in _KINDS:
        if head.startswith(signature):
            return name, make
    is_zlib = len(head) > 2 and head[0] == 0x78 and int.from_bytes(head[:2], "big") % 31 == 0
    return _ZLIB if is_zlib else None


def read_compressed(file: FileBytes, budget: Budget) -> Contents:
    """Unpacks a file and reads what is in it.

    Raises:
        Malformed: it does not unpack, or to more than an inspection takes on.
    """
    kind = compression_of(file)
    if kind is None:
        raise Malformed(f"{file.name}: not compressed in a known way")
    name, make = kind
    unpacked = io.BytesIO()
    left = _unpack(file, make(), budget, unpacked, name)
    size = unpacked.tell()

    def read_at(wanted: int, position: int) -> bytes:
        unpacked.seek(position)
        return unpacked.read(wanted)

    contents = budget.nested(FileBytes(read_at, 0, size, file.name))
    contents.format = f"{contents.format}, {name}-compressed"
    if left:
        contents.corrupt(f"{file.name}: {left:,} bytes after the end of the compressed data")
    return contents


def _unpack(file: FileBytes, unpacker: Any, budget: Budget, unpacked: io.BytesIO, name: str) -> int:
    """Writes what it unpacks to, and gives the number of bytes after its end."""
    try:
        for position in range(0, file.length, _PIECE_BYTES):
            chunk = file.read(position, min(_PIECE_BYTES, file.length - position))
            while True:
                piece = unpacker.decompress(chunk, _PIECE_BYTES)
                chunk = b""
                budget.spend_inflated(len(piece), file.name)
                unpacked.write(piece)
                if unpacker.eof:
                    return len(unpacker.unused_data) + max(file.length - position - _PIECE_BYTES, 0)
                if unpacker.needs_input and len(piece) < _PIECE_BYTES:
                    break
    except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError) as error:
        raise Malformed(f"{file.name}: its {name}-compressed data is damaged ({error})") from error
    raise Malformed(f"{file.name}: its {name}-compressed data ends early: the file was cut short")

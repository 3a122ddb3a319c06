"""Writes checkpoints by hand, opcode by opcode and header by header, without any library of the formats."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

from strata_core.audit import Report, inspect_checkpoint

SHARED = Path(__file__).resolve().parents[3].parent / "shared"


def name(module: str, attribute: str) -> bytes:
    """GLOBAL."""
    return f"c{module}\n{attribute}\n".encode()


def text(value: str) -> bytes:
    """BINUNICODE."""
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    """BININT."""
    return b"J" + struct.pack("<i", value)


def numbers(values: tuple[int, ...]) -> bytes:
    """A tuple of BININTs."""
    return b"(" + b"".join(number(value) for value in values) + b"t"


def call(function: bytes, *arguments: bytes) -> bytes:
    """REDUCE."""
    return function + b"(" + b"".join(arguments) + b"tR"


def program(body: bytes, protocol: int = 2) -> bytes:
    """A whole pickle."""
    return b"\x80" + bytes([protocol]) + body + b"."


def tensor(
    key: str,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    *,
    offset: int = 0,
    elements: int,
    kind: str = "FloatStorage",
) -> bytes:
    """A call of _rebuild_tensor_v2 on a stored storage."""
    storage = b"(" + text("storage") + name("torch", kind) + text(key) + text("cpu") + number(elements) + b"tQ"
    hooks = call(name("collections", "OrderedDict"))
    return call(
        name("torch._utils", "_rebuild_tensor_v2"),
        storage,
        number(offset),
        numbers(shape),
        numbers(stride),
        b"\x89",
        hooks,
    )


def table(**entries: bytes) -> bytes:
    """A dict of text keys."""
    return b"}(" + b"".join(text(key) + value for key, value in entries.items()) + b"u"


def archive(pickle: bytes, storages: dict[str, bytes] | None = None, extra: dict[str, bytes] | None = None) -> bytes:
    """A zip as torch.save lays it out."""
    members = {"data.pkl": pickle, "byteorder": b"little"}
    members |= {f"data/{key}": data for key, data in (storages or {}).items()}
    members |= {"version": b"3\n", **(extra or {})}
    return zipped({f"archive/{member}": data for member, data in members.items()})


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of these records."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for member, data in members.items():
            packed.writestr(zipfile.ZipInfo(member), data, compress_type=compression)
    return file.getvalue()


def floats(*values: float) -> bytes:
    """float32, little-endian."""
    return struct.pack(f"<{len(values)}f", *values)


def safetensors(header: object, data: bytes = b"") -> bytes:
    """A safetensors file; bytes are taken as the header's text."""
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(body)) + body + data


def inspected(tmp_path: Path, data: bytes, *, stats: bool = False) -> Report:
    """The report on a file of these bytes, under a name that tells nothing."""
    path = tmp_path / "checkpoint"
    path.write_bytes(data)
    return inspect_checkpoint(path, stats=stats)

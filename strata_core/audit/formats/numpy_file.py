"""Arrays as numpy saves them: .npy files and .npz archives (numpy/lib/format.py). Object arrays in them are pickles."""

from __future__ import annotations

import ast
import math
import re
import struct
from typing import Any

from strata_core.audit.dtypes import ELEMENT_TYPES, ElementType
from strata_core.audit.findings import Malformed, printable
from strata_core.audit.opening import FileBytes
from strata_core.audit.reading import Budget, Contents, PickleReader
from strata_core.audit.tensors import MAX_DIMENSIONS, Storage, StoredBytes, Tensor, row_major

_MAGIC = b"\x93NUMPY"
_LAYOUTS = {1: "<H", 2: "<I", 3: "<I"}
_LONGEST_HEADER_BYTES = 1 << 16
_NUMBERS = {
    "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128", "b1": "bool",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32",
    "u8": "uint64",
}  # fmt: skip
_SPELT = re.compile(r"([<>|=]?)([a-zA-Z])([0-9]*)(\[[^\]]*\])?")


def is_numpy_file(file: FileBytes) -> bool:
    """Whether it starts as numpy.save starts a file."""
    return file.head(len(_MAGIC)) == _MAGIC


def read_numpy(file: FileBytes, budget: Budget, name: str = "array") -> Contents:
    """Reads the header of one array, and judges its objects if it holds any.

    Args:
        name: how the array is listed.
    """
    contents = Contents("numpy array")
    try:
        _read_array(file, budget, name, contents)
    except Malformed as error:
        contents.corrupt(error.message if file.name in error.message else f"{file.name}: {error.message}")
    return contents


def _read_array(file: FileBytes, budget: Budget, name: str, contents: Contents) -> None:
    major, minor = file.read(len(_MAGIC), 2)
    if major not in _LAYOUTS or minor:
        raise Malformed(f"version {major}.{minor} of numpy's format; 1.0, 2.0 and 3.0 are read")
    width = struct.calcsize(_LAYOUTS[major])
    (header_bytes,) = struct.unpack(_LAYOUTS[major], file.read(8, width))
    if header_bytes > _LONGEST_HEADER_BYTES:
        raise Malformed(f"a header of {header_bytes:,} bytes; at most {_LONGEST_HEADER_BYTES:,} are read")
    start = 8 + width + header_bytes
    described = _parse_header(file.read(8 + width, header_bytes), "utf-8" if major == 3 else "latin-1")
    shape = described["shape"]
    size_bytes, has_objects, element_type, little = _described_type(described["descr"])
    rest = file.part(start, file.length - start, f"{file.name}: its objects")
    if has_objects:
        run = PickleReader(rest, contents, budget).run()
        contents.value = run.value
        if run.broken is None and run.end < rest.length:
            contents.corrupt(f"{file.name}: {rest.length - run.end:,} bytes after the end of its pickle")
        return
    due = math.prod(shape) * size_bytes
    if due != rest.length:
        raise Malformed(f"{due:,} bytes of elements are announced and {rest.length:,} follow")
    storage = Storage(name, due, StoredBytes(rest, due), None, little)
    stride = tuple(reversed(row_major(tuple(reversed(shape))))) if described["fortran_order"] else row_major(shape)
    contents.storages.append(storage)
    contents.tensors.append(Tensor(name, element_type, shape, stride, 0, storage))


def _parse_header(data: bytes, encoding: str) -> dict[str, Any]:
    try:
        found = ast.literal_eval(data.decode(encoding).strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError) as error:
        raise Malformed("its header is no Python literal") from error
    if not isinstance(found, dict) or set(found) != {"descr", "fortran_order", "shape"}:
        raise Malformed("its header has not exactly descr, fortran_order and shape")
    shape = found["shape"]
    if not isinstance(found["fortran_order"], bool) or not isinstance(shape, tuple) or len(shape) > MAX_DIMENSIONS:
        raise Malformed("its header has no sound shape and order")
    if not all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 63 for size in shape):
        raise Malformed("its header has no sound shape")
    return found


def _described_type(spelt: Any) -> tuple[int, bool, ElementType, bool]:
    """Bytes of an element, whether it holds objects, its type, and whether it is little-endian."""
    if isinstance(spelt, list):
        return _described_fields(spelt)
    match = _SPELT.fullmatch(spelt) if isinstance(spelt, str) else None
    if match is None:
        shown = printable(spelt, limit=40) if isinstance(spelt, str) else type(spelt).__name__
        raise Malformed(f"its header has an element type that is not read: {shown}")
    order, kind, digits = match[1], match[2], match[3]
    little = order != ">"
    if kind == "O":
        return 8, True, ElementType("object", 64, "other"), True
    if kind + digits in _NUMBERS:
        element_type = ELEMENT_TYPES[_NUMBERS[kind + digits]]
        return element_type.bits // 8, False, element_type, little
    if kind not in "SUVaMmgfc" or not (digits or kind in "Mm"):
        raise Malformed(f"its header has an element type that is not read: {printable(str(spelt), limit=40)}")
    size = int(digits[:12] or "8") * (4 if kind == "U" else 1)
    return size, False, ElementType(printable(str(spelt), limit=40), max(size * 8, 1), "other"), little


def _described_fields(fields: list[Any]) -> tuple[int, bool, ElementType, bool]:
    total, any_objects = 0, False
    for field in fields:
        if not isinstance(field, tuple) or len(field) not in (2, 3):
            raise Malformed("its header has a field without name and type")
        size, has_objects, _, _ = _described_type(field[1])
        shape = field[2] if len(field) == 3 else ()
        shape = (shape,) if isinstance(shape, int) else shape
        if not isinstance(shape, tuple) or not all(isinstance(one, int) and 0 <= one < 1 << 40 for one in shape):
            raise Malformed("its header has a field without sound shape")
        total += size * math.prod(shape)
        any_objects = any_objects or has_objects
    return total, any_objects, ElementType(f"record of {len(fields)} fields", max(total * 8, 1), "other"), True

"""GGUF files (llama.cpp): a header, typed metadata, a table of tensors, then their bytes at aligned places.

Source of the layout: docs/gguf.md and the block sizes of ggml-common.h in github.com/ggml-org/ggml.
"""

from __future__ import annotations

import struct
from typing import Any

from strata_core.audit.dtypes import ELEMENT_TYPES, ElementType
from strata_core.audit.findings import Malformed, printable
from strata_core.audit.opening import FileBytes
from strata_core.audit.reading import Budget, Contents
from strata_core.audit.templates import judge_template
from strata_core.audit.tensors import Storage, StoredBytes, Tensor, row_major

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_ENTRIES = 200_000
_MOST_VALUES = 4_000_000
_LONGEST_NAME_BYTES = 1 << 16
_LONGEST_TEXT_BYTES = 16 << 20
_KEPT_TEXT = 2000
_MOST_DIMENSIONS = 4
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_BOOLEAN, _TEXT, _LIST = 7, 8, 9
_PLAIN = {0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16"}
_BLOCKS = {
    2: ("q4_0", 32, 18), 3: ("q4_1", 32, 20), 6: ("q5_0", 32, 22), 7: ("q5_1", 32, 24), 8: ("q8_0", 32, 34),
    9: ("q8_1", 32, 36), 10: ("q2_k", 256, 84), 11: ("q3_k", 256, 110), 12: ("q4_k", 256, 144), 13: ("q5_k", 256, 176),
    14: ("q6_k", 256, 210), 15: ("q8_k", 256, 292), 16: ("iq2_xxs", 256, 66), 17: ("iq2_xs", 256, 74),
    18: ("iq3_xxs", 256, 98), 19: ("iq1_s", 256, 50), 20: ("iq4_nl", 32, 18), 21: ("iq3_s", 256, 110),
    22: ("iq2_s", 256, 82), 23: ("iq4_xs", 256, 136), 29: ("iq1_m", 256, 56), 34: ("tq1_0", 256, 54),
    35: ("tq2_0", 256, 66), 39: ("mxfp4", 32, 17),
}  # fmt: skip
"""Name, elements and bytes of a block, by ggml's number of the type."""


def is_gguf(file: FileBytes) -> bool:
    """Whether it starts with GGUF's magic."""
    return file.head(4) == _MAGIC


def read_gguf(file: FileBytes, budget: Budget) -> Contents:
    """Reads metadata and tensors; templates in the metadata are judged."""
    contents = Contents("gguf")
    try:
        _Reader(file, contents).read()
    except Malformed as error:
        contents.corrupt(f"{file.name}: {error.message}" if file.name not in error.message else error.message)
    return contents


class _Reader:
    def __init__(self, file: FileBytes, contents: Contents) -> None:
        self.file = file
        self.contents = contents
        self.position = 4
        self.order = "<"
        self.values = _MOST_VALUES
        self.alignment = 32

    def read(self) -> None:
        version = self.number("I")
        if version not in _VERSIONS and int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS:
            self.order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in _VERSIONS:
            raise Malformed(f"GGUF version {version}; 2 and 3 are read")
        tensors, entries = self.number("Q"), self.number("Q")
        if max(tensors, entries) > _MOST_ENTRIES:
            raise Malformed(
                f"{tensors:,} tensors and {entries:,} entries of metadata; at most {_MOST_ENTRIES:,} are read"
            )
        self.contents.details["version"] = version
        self._read_metadata(entries)
        self._read_tensors(tensors)

    def number(self, code: str) -> Any:
        size = struct.calcsize("<" + code)
        data = self.file.read(self.position, size)
        self.position += size
        return struct.unpack(self.order + code, data)[0]

    def text(self, limit: int) -> str:
        size = self.number("Q")
        if size > limit:
            raise Malformed(f"a text of {size:,} bytes at byte {self.position:,}; at most {limit:,} are read")
        data = self.file.read(self.position, size)
        self.position += size
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return data.decode("latin-1")

    def _read_metadata(self, entries: int) -> None:
        seen: set[str] = set()
        for _ in range(entries):
            key = self.text(_LONGEST_NAME_BYTES)
            if key in seen:
                self.contents.corrupt(f"{self.file.name}: the metadata {printable(key)} is given twice")
            seen.add(key)
            value = self._value(self.number("I"), depth=0)
            if key == "general.alignment":
                if not isinstance(value, int) or value <= 0 or value % 8:
                    raise Malformed(f"general.alignment is {printable(repr(value), limit=40)}, no multiple of 8")
                self.alignment = value
            if isinstance(value, str) and "chat_template" in key:
                judge_template(f"{self.file.name}: {printable(key)}", value, self.contents)
                continue
            if isinstance(value, str):
                value = value[:_KEPT_TEXT]
            if value is not None:
                self.contents.settings[key] = value

    def _value(self, kind: int, *, depth: int) -> Any:
        """A number, text or boolean; lists are passed over and give None."""
        self.values -= 1
        if self.values < 0:
            raise Malformed(f"more than {_MOST_VALUES:,} values of metadata; it was followed no further")
        if kind == _TEXT:
            return self.text(_LONGEST_TEXT_BYTES)
        if kind == _LIST:
            self._pass_over_list(depth)
            return None
        if kind not in _SCALARS:
            raise Malformed(f"metadata of the unknown type {kind} at byte {self.position:,}")
        value = self.number(_SCALARS[kind])
        if kind == _BOOLEAN and value > 1:
            raise Malformed(f"a boolean of {value} at byte {self.position:,}")
        return bool(value) if kind == _BOOLEAN else value

    def _pass_over_list(self, depth: int) -> None:
        kind, count = self.number("I"), self.number("Q")
        if depth > 2:
            raise Malformed("lists of metadata nested more than 3 deep")
        if kind in _SCALARS:
            size = count * struct.calcsize("<" + _SCALARS[kind])
            self.file.part(self.position, size, f"{self.file.name}: a list of metadata")
            self.position += size
            return
        if count > self.file.length - self.position:
            raise Malformed(f"a list of {count:,} values with {self.file.length - self.position:,} bytes left")
        for _ in range(count):
            self._value(kind, depth=depth + 1)

    def _read_tensors(self, count: int) -> None:
        described = []
        for _ in range(count):
            name = self.text(_LONGEST_NAME_BYTES)
            dimensions = self.number("I")
            if not 0 <= dimensions <= _MOST_DIMENSIONS:
                raise Malformed(f"tensor {printable(name)} has {dimensions} dimensions; ggml has at most 4")
            shape = tuple(reversed([self.number("Q") for _ in range(dimensions)]))
            described.append((name, shape, self.number("I"), self.number("Q")))
        start = -(-self.position // self.alignment) * self.alignment
        end = start
        seen: set[str] = set()
        for name, shape, kind, offset in sorted(described, key=lambda tensor: tensor[3]):
            shown = f"tensor {printable(name)}"
            if name in seen:
                self.contents.corrupt(f"{self.file.name}: {shown} is listed twice")
            seen.add(name)
            element_type, size = _size_of(shape, kind, shown)
            if offset % self.alignment or start + offset < end:
                self.contents.corrupt(
                    f"{self.file.name}: {shown} overlaps another or lies at no multiple of the alignment"
                )
            if start + offset + size > self.file.length:
                self.contents.corrupt(
                    f"{self.file.name}: {shown}: {size:,} bytes are announced at byte {start + offset:,} of "
                    f"{self.file.length:,}: the file was cut short"
                )
                continue
            end = start + offset + size
            part = self.file.part(start + offset, size, shown)
            storage = Storage(name, size, StoredBytes(part, size))
            self.contents.storages.append(storage)
            self.contents.tensors.append(Tensor(name, element_type, shape, row_major(shape), 0, storage))
        left = self.file.length - max(end, min(self.position, self.file.length))
        if left >= self.alignment and described:
            self.contents.corrupt(f"{self.file.name}: {left:,} bytes after the last tensor")


def _size_of(shape: tuple[int, ...], kind: int, shown: str) -> tuple[ElementType, int]:
    elements = 1
    for size in shape:
        elements *= size
    if elements >= 1 << 63:
        raise Malformed(f"{shown} has {elements:,} elements")
    if kind in _PLAIN:
        element_type = ELEMENT_TYPES[_PLAIN[kind]]
        return element_type, element_type.bytes_for(elements)
    if kind not in _BLOCKS:
        raise Malformed(f"{shown} has the unknown type {kind}")
    name, block, block_bytes = _BLOCKS[kind]
    if elements and shape[-1] % block:
        raise Malformed(f"{shown}: rows of {shape[-1]:,} elements do not fill blocks of {block}")
    return ElementType(name, -(-block_bytes * 8 // block), "quantised"), elements // block * block_bytes

"""safetensors files: an 8-byte header length, a JSON header, and the tensors' bytes without gaps.

Source of the rules: the format's README and the checks of its reference reader (github.com/huggingface/safetensors).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from strata_core.audit.bounded_json import MAX_JSON_BYTES, parse_json_object
from strata_core.audit.dtypes import SAFETENSORS_TYPES
from strata_core.audit.findings import Malformed, printable
from strata_core.audit.opening import FileBytes
from strata_core.audit.reading import Contents
from strata_core.audit.tensors import MAX_DIMENSIONS, Storage, StoredBytes, Tensor, row_major

_LENGTH_BYTES = 8


def looks_like_safetensors(file: FileBytes) -> bool:
    """Whether a JSON object starts where the header does."""
    head = file.head(_LENGTH_BYTES + 1)
    return len(head) == _LENGTH_BYTES + 1 and head[-1:] == b"{"


def read_safetensors(file: FileBytes) -> Contents:
    """Reads the header of a file and checks that its tensors fill the rest exactly."""
    contents = Contents("safetensors")
    try:
        header, data_start = _read_header(file)
    except Malformed as error:
        contents.corrupt(error.message)
        return contents
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        contents.corrupt(f"{file.name}: __metadata__ is no table of texts")
    else:
        contents.details["metadata"] = metadata
    entries = []
    for name, described in header.items():
        try:
            entries.append(_read_entry(name, described))
        except Malformed as error:
            contents.corrupt(f"{file.name}: tensor {printable(name)}: {error.message}")
    if len(entries) == len(header):
        _check_coverage(file, entries, data_start, contents)
    for entry in entries:
        if entry.end <= file.length - data_start:
            contents.tensors.append(_tensor(file, entry, data_start))
    contents.storages = [tensor.storage for tensor in contents.tensors if tensor.storage]
    return contents


@dataclass(frozen=True)
class _Entry:
    name: str
    spelt_type: str
    shape: tuple[int, ...]
    start: int
    end: int


def _read_header(file: FileBytes) -> tuple[dict[str, Any], int]:
    (length,) = struct.unpack("<Q", file.head(_LENGTH_BYTES))
    available = file.length - _LENGTH_BYTES
    if length > available:
        raise Malformed(f"{file.name}: a header of {length:,} bytes is announced and {available:,} bytes follow")
    if length > MAX_JSON_BYTES:
        raise Malformed(f"{file.name}: a header of {length:,} bytes; at most {MAX_JSON_BYTES:,} are read")
    data = file.read(_LENGTH_BYTES, length)
    header = parse_json_object(data, f"{file.name}: its header", parse_int=_read_count)
    metadata = header.get("__metadata__")
    texts = [*header, *(list(metadata) + list(metadata.values()) if isinstance(metadata, dict) else [])]
    if any("\ud800" <= character <= "\udfff" for text in texts if isinstance(text, str) for character in text):
        raise Malformed(f"{file.name}: half a surrogate pair in its header: Python takes it, safetensors refuses it")
    return header, _LENGTH_BYTES + length


def _read_count(digits: str) -> int:
    """Python takes -0 as 0, safetensors as a fraction."""
    return -1 if digits == "-0" else int(digits)


def _read_entry(name: str, described: Any) -> _Entry:
    if not isinstance(described, dict) or set(described) != {"dtype", "shape", "data_offsets"}:
        raise Malformed("described by something else than dtype, shape and data_offsets")
    spelt, shape, offsets = described["dtype"], described["shape"], described["data_offsets"]
    if not isinstance(spelt, str) or spelt not in SAFETENSORS_TYPES:
        raise Malformed(
            f"unknown dtype {printable(spelt, limit=40) if isinstance(spelt, str) else type(spelt).__name__}"
        )
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(_is_count(size) for size in shape):
        raise Malformed("a shape that is no short list of counts")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_count(offset) for offset in offsets):
        raise Malformed("data_offsets that are no pair of counts")
    entry = _Entry(name, spelt, tuple(shape), *offsets)
    element_type = SAFETENSORS_TYPES[spelt]
    elements = Tensor(name, element_type, entry.shape).elements
    span = entry.end - entry.start
    if elements * element_type.bits % 8 or elements * element_type.bits // 8 != span:
        due = element_type.bytes_for(elements)
        raise Malformed(f"shape {list(shape)} of {spelt} takes {due:,} bytes and its offsets span {span:,}")
    return entry


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _check_coverage(file: FileBytes, entries: list[_Entry], data_start: int, contents: Contents) -> None:
    position = 0
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.end)):
        if entry.start < position:
            contents.corrupt(f"{file.name}: tensor {printable(entry.name)} overlaps the one before it")
        elif entry.start > position:
            gap = entry.start - position
            contents.corrupt(f"{file.name}: {gap:,} bytes before tensor {printable(entry.name)} belong to none")
        position = max(position, entry.end)
    found = file.length - data_start
    if position != found:
        what = f"{position - found:,} bytes are missing" if position > found else f"{found - position:,} bytes too many"
        contents.corrupt(f"{file.name}: {position:,} bytes of data are announced and {found:,} are present: {what}")


def _tensor(file: FileBytes, entry: _Entry, data_start: int) -> Tensor:
    size = entry.end - entry.start
    part = file.part(data_start + entry.start, size, f"{file.name}: {printable(entry.name)}")
    storage = Storage(entry.name, size, StoredBytes(part, size))
    element_type = SAFETENSORS_TYPES[entry.spelt_type]
    return Tensor(entry.name, element_type, entry.shape, row_major(entry.shape), 0, storage)

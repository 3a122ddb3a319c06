"""Flat little-endian arrays, one file each: appended while they are made, memory-mapped when they are read."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from strata_core.corpus.treebanks.structure_layout import HEADER_NAME, Array, array_file
from strata_core.errors import DataError
from strata_core.files import storage_errors, write_file

_PREPARE_AGAIN = "prepare the corpus again"


class ArrayFiles:
    """The arrays of one folder being made; a context manager that leaves the header last: what has one is whole.

    Args:
        folder: to be made.
        arrays: what it holds, by name; those whose name ends in `_offsets` begin with a 0.
        format_version: for the header.

    Attributes:
        rows: how many rows each array has so far.
        facts: goes into the header beside them; to be filled by the owner.

    Raises:
        StorageError: the file system refused.
    """

    def __init__(self, folder: Path, arrays: Mapping[str, Array], *, format_version: int) -> None:
        self.rows = dict.fromkeys(arrays, 0)
        self.facts: dict[str, Any] = {}
        self._folder = folder
        self._arrays = arrays
        self._format_version = format_version
        self._files: dict[str, BinaryIO] = {}

    def __enter__(self) -> ArrayFiles:
        with storage_errors(self._folder):
            self._folder.mkdir(parents=True)
            for name in self._arrays:
                self._files[name] = open(self._folder / array_file(name), "wb")
        for name in self._arrays:
            if name.endswith("_offsets"):
                self.append(name, [0])
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with contextlib.ExitStack() as files, storage_errors(self._folder):
            for file in self._files.values():
                files.callback(file.close)
        if kind is None:
            header = {"format_version": self._format_version, "rows": self.rows, **self.facts}
            write_file(self._folder / HEADER_NAME, json_bytes(header))

    def append(self, name: str, values: Any) -> None:
        """Adds rows to an array: numbers, or for an array of some width that many numbers a row."""
        array = np.asarray(values, dtype=self._arrays[name].dtype)
        with storage_errors(self._folder / array_file(name), wanted_bytes=array.nbytes):
            self._files[name].write(array.tobytes())
        self.rows[name] += array.size // self._arrays[name].width

    def leave_out(self, name: str) -> None:
        """Takes an array away again: no file, and nothing of it in the header."""
        with storage_errors(self._folder / array_file(name)):
            self._files.pop(name).close()
            (self._folder / array_file(name)).unlink()
        del self.rows[name]


def map_arrays(folder: Path, arrays: Mapping[str, Array], rows: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The arrays of a folder, memory-mapped.

    Args:
        folder: what an ArrayFiles made.
        arrays: what it holds.
        rows: how many rows each has, from the header.

    Raises:
        DataError: a file is missing or has another size than `rows` says.
    """
    return {name: _map_array(folder / array_file(name), array, rows.get(name, 0)) for name, array in arrays.items()}


def read_versioned_json(path: Path, *, format_version: int, keys: tuple[str, ...]) -> dict[str, Any]:
    """A JSON object that has these keys and says that it is of this format version.

    Raises:
        DataError: it cannot be read, is of another version, or a key is missing.
    """
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}", hint=_PREPARE_AGAIN) from error
    found = value.get("format_version") if isinstance(value, dict) else None
    if found != format_version:
        raise DataError(f"{path}: format version {found!r}, this strata reads {format_version}", hint=_PREPARE_AGAIN)
    missing = [key for key in keys if key not in value]
    if missing:
        raise DataError(f"{path}: {', '.join(missing)} missing", hint=_PREPARE_AGAIN)
    return value


def json_bytes(value: Any) -> bytes:
    """JSON as it is written beside arrays: the same value gives the same bytes."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).encode() + b"\n"


def _map_array(path: Path, array: Array, rows: int) -> np.ndarray:
    expected_bytes = rows * array.width * np.dtype(array.dtype).itemsize
    found_bytes = path.stat().st_size if path.exists() else None
    if found_bytes != expected_bytes:
        found = "missing" if found_bytes is None else f"{found_bytes:,} bytes"
        raise DataError(f"{path}: {found}, {expected_bytes:,} bytes expected", hint=_PREPARE_AGAIN)
    shape = (rows,) if array.width == 1 else (rows, array.width)
    if rows == 0:
        return np.empty(shape, dtype=array.dtype)
    return np.memmap(path, dtype=array.dtype, mode="r", shape=shape)

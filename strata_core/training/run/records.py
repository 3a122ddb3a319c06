"""The line-by-line records of a run: metrics.jsonl, evaluations.jsonl and events.jsonl."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from strata_core.files import storage_errors, write_file


def _plain(value: Any) -> Any:
    """The value with NaN and infinities as null, which JSON has no numbers for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


class RecordLog:
    """A file of JSON objects, one a line, only ever appended to.

    Everything that depends on the clock or the machine belongs under a record's key "timing".
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def append(self, record: Mapping[str, Any]) -> None:
        """Adds one record; a line before it that a kill or a full disk cut short is dropped.

        Threads may append at the same time, one process.

        Raises:
            StorageError: the file system refused; what it took of the line is dropped by the next `append`.
        """
        line = (json.dumps(_plain(record), ensure_ascii=False, allow_nan=False) + "\n").encode()
        with self._lock, storage_errors(self.path, wanted_bytes=len(line)), open(self.path, "a+b") as file:
            _drop_torn_line(file)
            file.write(line)

    def sync(self) -> None:
        """Makes what was appended durable."""
        if self.path.exists():
            with storage_errors(self.path), open(self.path, "rb") as file:
                os.fsync(file.fileno())

    def read(self) -> list[dict[str, Any]]:
        """The whole records; a last line that was cut short is left out."""
        if not self.path.exists():
            return []
        records = []
        for line in self.path.read_bytes().split(b"\n")[:-1]:
            if line:
                try:
                    records.append(json.loads(line))
                except ValueError:
                    break
        return records

    def keep_up_to(self, step: int) -> None:
        """Drops what comes after `step`: the steps that a resumed run does again."""
        if not self.path.exists():
            return
        kept = [record for record in self.read() if record["step"] <= step]
        lines = "".join(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in kept)
        data = lines.encode()
        if data != self.path.read_bytes():
            write_file(self.path, data)


def _drop_torn_line(file: BinaryIO) -> None:
    """Cuts off what follows the last end of a line: half a record, which would spoil the one appended to it."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    file.seek(size - 1)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)

"""The line-by-line records of a run: metrics.jsonl, evaluations.jsonl and events.jsonl."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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

    def append(self, record: Mapping[str, Any]) -> None:
        """Adds one record.

        Raises:
            StorageError: the file system refused; a line cut short is dropped by the next `keep_up_to`.
        """
        line = json.dumps(_plain(record), ensure_ascii=False, allow_nan=False) + "\n"
        with storage_errors(self.path, wanted_bytes=len(line)), open(self.path, "a", encoding="utf-8") as file:
            file.write(line)

    def sync(self) -> None:
        """Makes what was appended durable."""
        if self.path.exists():
            with storage_errors(self.path), open(self.path, "rb") as file:
                os.fsync(file.fileno())

    def read(self) -> list[dict[str, Any]]:
        """The whole records; a last line that a kill cut short is left out."""
        if not self.path.exists():
            return []
        records = []
        for line in self.path.read_bytes().split(b"\n"):
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

"""What lies in a folder, seen from its names alone: nothing is opened and no link is followed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from strata_core.manifest.faults import Fault
from strata_core.manifest.names import show_name
from strata_core.manifest.regular_file import kind_of


@dataclass(frozen=True)
class Found:
    """One name in a folder.

    Attributes:
        kind: "a file", "a folder", "a link" or "a special file".
        size: in bytes, of a file.
        target: of a link, as written in it.
    """

    kind: str
    size: int
    target: str = ""

    @property
    def described(self) -> str:
        """In words, for a message."""
        if self.kind == "a link":
            return f"a link to {show_name(self.target)}"
        return f"{self.size:,} bytes" if self.kind == "a file" else self.kind


def look_around(folder: Path) -> tuple[dict[str, Found], list[Fault]]:
    """Everything below a folder by relative path (forward slashes), and the folders that cannot be listed."""
    found: dict[str, Found] = {}
    faults: list[Fault] = []
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            with os.scandir(folder / prefix) as entries:
                for entry in entries:
                    item = _look_at(entry)
                    found[prefix + entry.name] = item
                    if item.kind == "a folder":
                        waiting.append(f"{prefix}{entry.name}/")
        except OSError as error:
            name = prefix.rstrip("/") or "."
            faults.append(Fault("other", name, f"cannot be listed: {error.strerror or error}"))
    return found, faults


def _look_at(entry: os.DirEntry[str]) -> Found:
    status = entry.stat(follow_symlinks=False)
    kind = kind_of(status)
    return Found(kind, status.st_size, os.readlink(entry.path) if kind == "a link" else "")

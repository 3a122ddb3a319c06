"""Predictions as bytes, to standard output or to a new file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from strata_core.errors import PlaceTakenError, UsageError
from strata_core.files import write_file


def check_place(out: Path, *, option: str = "--out") -> None:
    """Refuses a place that cannot take a new file.

    Raises:
        PlaceTakenError: something is there.
        UsageError: its folder is not.
    """
    if os.path.lexists(out):
        raise PlaceTakenError(f"{out} exists already", hint=f"choose another {option}; nothing is overwritten")
    if not out.parent.is_dir():
        raise UsageError(f"{out.parent}: no such directory", hint=f"make it first, or choose another {option}")


def write_prediction(data: bytes, out: Path | None) -> None:
    """Writes UTF-8 text, whatever the encoding of standard output is; a file is whole from when it has its name.

    Raises:
        PlaceTakenError: the file appeared meanwhile.
        StorageError: the file system refused.
    """
    if out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    check_place(out)
    write_file(out, data)

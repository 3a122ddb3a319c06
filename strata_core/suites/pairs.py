"""Minimal pairs: two sentences that differ in what makes one of them good."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata_core.errors import DataError, UsageError


@dataclass(frozen=True, slots=True)
class Pair:
    """One minimal pair.

    Attributes:
        phenomenon, paradigm: what it tests, in broad and in narrow.
        good, bad: the sentences.
        where: file and line, for messages.
    """

    phenomenon: str
    paradigm: str
    good: str
    bad: str
    where: str


PairReader = Callable[[Path], Iterator[Pair]]
"""A format: reads the pairs of a file or folder one by one, and raises DataError with file and line at a fault."""


def numbered_lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a UTF-8 file, which may be compressed (.gz), each after "file:line".

    Raises:
        DataError: it cannot be read.
    """
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield f"{path}:{number}", line.rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}:{number + 1}: cannot be read: {error}") from error


def files_of(path: Path, patterns: tuple[str, ...], what: str) -> list[Path]:
    """A file itself, or the files of a folder that match, in order of their names.

    Raises:
        UsageError: there is nothing at the path, or nothing that matches.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"--suite-path {path}: no such file or directory", hint=f"name the folder of {what}")
    found = sorted({file for pattern in patterns for file in path.glob(pattern)})
    if not found:
        raise UsageError(f"{path} has no {' or '.join(patterns)}", hint=f"name the folder of {what}")
    return found


def parsed_object(line: str, where: str) -> dict[str, Any]:
    """A line of JSON Lines.

    Raises:
        DataError: it is no JSON object.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{where}: a JSON object expected, not {type(value).__name__}")
    return value


def text_of(value: dict[str, Any], name: str, where: str) -> str:
    """A column that has to hold text.

    Raises:
        DataError: it is not there, or holds something else or nothing.
    """
    if name not in value:
        raise DataError(f"{where}: no column {name!r}", hint=f"it has {', '.join(map(repr, value)) or 'none'}")
    text = value[name]
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{where}: {name} is {text!r}, not a text")
    return text

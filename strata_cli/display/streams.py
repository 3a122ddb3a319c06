"""Standard output and error as they are found: closed, piped, not UTF-8, or a terminal with or without colour."""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import IO, Any, TextIO

_NARROWEST_COLUMNS = 60


class _ForgivingFile(io.FileIO):
    """A stream whose reader may leave: what is written afterwards is dropped, and the command's own status stands."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Makes the standard streams safe to write to, whatever they are.

    A closed one is opened on the null device, so that no file opened later takes its number. Characters that an
    encoding lacks, and bytes of file names that are no characters, come out as backslash escapes.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text_stream(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text_stream(2, sys.stderr)


def _text_stream(descriptor: int, found: TextIO | None) -> io.TextIOWrapper:
    if found is not None:
        found.flush()
    raw = _ForgivingFile(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=found.encoding if found is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=descriptor == 2 or raw.isatty(),
    )


def wants_colour(stream: IO[str]) -> bool:
    """True on a terminal that shows colour, unless NO_COLOR is set; FORCE_COLOR puts no codes into pipes and logs."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_live(stream: IO[str]) -> bool:
    """True where lines already written can be written over."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """The width to lay tables out for: the terminal's, and never so narrow that names would be cut."""
    return max(shutil.get_terminal_size((80, 24)).columns, _NARROWEST_COLUMNS)


def printable(text: str) -> str:
    """The text on one line, with line breaks, control characters and stray bytes as backslash escapes."""
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()

"""What the beginning of a file looks like: three columns in every line are triples, whatever the file's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strata_core.corpus.sources.files import InputFile
from strata_core.corpus.sources.records import BYTE_ORDER_MARK
from strata_core.corpus.sources.streams import open_stream

_LOOKED_AT_LINES = 100
_LOOKED_AT_BYTES = 1 << 20


@dataclass(frozen=True)
class Glance:
    """The first lines of a file, blank ones aside.

    Attributes:
        n_lines: how many were looked at.
        n_triples: how many of them have three columns, none of them empty.
        odd: what the first other line is: "line 3 has 2 columns"; None where there is none.
    """

    n_lines: int = 0
    n_triples: int = 0
    odd: str | None = None

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to tell by."""
        return self.n_lines == 0

    @property
    def is_triples(self) -> bool:
        """Whether every line is a triple."""
        return 0 < self.n_lines == self.n_triples

    @property
    def is_mostly_triples(self) -> bool:
        """Whether more than half of the lines are triples."""
        return 2 * self.n_triples > self.n_lines


def tab_separated(line: bytes) -> list[bytes]:
    """The columns of a line."""
    return line.split(b"\t")


def glance(file: InputFile, columns_of: Callable[[bytes], Sequence[bytes | str]] = tab_separated) -> Glance:
    """Looks at the first lines of a file.

    Args:
        file: what is looked at; not standard input.
        columns_of: cuts a line into columns.

    Raises:
        DataError: the file cannot be read, or is not compressed as its name says.
    """
    with open_stream(file) as stream:
        data = stream.content.read(_LOOKED_AT_BYTES).removeprefix(BYTE_ORDER_MARK)
    lines = data.split(b"\n")
    if len(data) >= _LOOKED_AT_BYTES and len(lines) > 1:
        lines.pop()
    n_lines = n_triples = 0
    odd = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if n_lines == _LOOKED_AT_LINES:
            break
        n_lines += 1
        columns = columns_of(line.removesuffix(b"\r"))
        if len(columns) == 3 and all(columns):
            n_triples += 1
        elif odd is None:
            n_columns = len(columns)
            count = f"{n_columns} column{'s' if n_columns > 1 else ''}" if n_columns != 3 else "an empty column"
            odd = f"line {number} has {count}"
    return Glance(n_lines, n_triples, odd)

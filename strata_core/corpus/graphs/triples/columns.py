"""Files of columns: what parts them, whether the first line names them, and the triples in them.

In tab-separated files everything between two tabs is the name, with its quotes and spaces. Comma-separated files follow
RFC 4180 (a name with a comma in it stands in double quotes), but for line breaks in names, and spaces behind a comma
are dropped; semicolons and tabs also serve.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from strata_core.corpus.graphs.triples.knowledge_graph import COLUMNS
from strata_core.corpus.graphs.triples.lines import text_lines
from strata_core.corpus.sources.files import InputFile
from strata_core.errors import DataError

_HEADER_NAMES = {
    "head": "head headid headentity headname h subject subjectid subj s source src from start startid node1 entity1 e1",
    "relation": "relation relationid relationname relationship relationtype rel r predicate pred p type edge edgetype "
    "label property",
    "tail": "tail tailid tailentity tailname t object objectid obj o target dst to end endid node2 entity2 e2",
}
_ROLES = {name: role for role, names in _HEADER_NAMES.items() for name in names.split()}
_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True)
class ColumnLayout:
    """How a file of columns is read.

    Attributes:
        delimiter: what stands between two columns.
        quoted: whether double quotes enclose names.
        header: the cells of a first line that names the columns; None where it does not.
        by_name: where head, relation and tail stand, as the header says; None where it does not.
        n_columns: how many there are in each line.
    """

    delimiter: str
    quoted: bool
    header: tuple[str, ...] | None = None
    by_name: tuple[int, int, int] | None = None
    n_columns: int = 3


TAB_SEPARATED = ColumnLayout("\t", quoted=False)


def find_layout(file: InputFile, *, is_csv: bool) -> ColumnLayout:
    """How a .tsv or .csv file is read: its first line tells.

    A header is a line with head, relation and tail among its cells under one of their usual names, in any case; or two
    of the three, which leaves the columns where they are.

    Raises:
        DataError: the file cannot be read, or its first line cannot.
    """
    line, text = next(text_lines(file), (1, ""))
    delimiter = _delimiter(text) if is_csv else "\t"
    layout = ColumnLayout(delimiter, quoted=is_csv)
    cells = tuple(_cells(text, layout, f"{file.shown}:{line}"))
    by_name = header_places(cells)
    if by_name is not None:
        return ColumnLayout(delimiter, is_csv, cells, by_name, len(cells))
    is_header = len(cells) == 3 and len({_role(cell) for cell in cells} - {None}) == 2
    return ColumnLayout(delimiter, is_csv, cells if is_header else None)


def header_places(cells: Sequence[str]) -> tuple[int, int, int] | None:
    """Where head, relation and tail stand by the names of columns; None unless each of them is there once."""
    roles = [_role(cell) for cell in cells]
    if any(roles.count(role) != 1 for role in COLUMNS):
        return None
    head, relation, tail = (roles.index(role) for role in COLUMNS)
    return head, relation, tail


def cells_of(line: bytes, layout: ColumnLayout) -> list[str]:
    """The cells of a line; one that cannot be read has none."""
    try:
        return _cells(line.decode(), layout, "")
    except (UnicodeDecodeError, DataError):
        return []


def read_rows(file: InputFile, layout: ColumnLayout, columns: Sequence[str] | None) -> Iterator[tuple[str, str, str]]:
    """Head, relation and tail of each line.

    Args:
        file: what is read.
        layout: how.
        columns: "head", "relation" and "tail" in the order of the columns, whatever the header says; None for its own.

    Raises:
        DataError: the file cannot be read, or a line is no triple.
    """
    places = tuple(columns.index(name) for name in COLUMNS) if columns else layout.by_name or (0, 1, 2)
    head, relation, tail = places
    lines = text_lines(file)
    if layout.header is not None:
        next(lines)
    for line, text in lines:
        place = f"{file.shown}:{line}"
        cells = _cells(text, layout, place)
        if len(cells) != layout.n_columns or not (cells[head] and cells[relation] and cells[tail]):
            raise _no_triple(place, cells, layout)
        yield cells[head], cells[relation], cells[tail]


def _no_triple(place: str, cells: list[str], layout: ColumnLayout) -> DataError:
    found = "an empty column" if len(cells) == layout.n_columns else f"{len(cells)} columns"
    wanted = "a triple has 3 names" if layout.n_columns == 3 else f"the header has {layout.n_columns}"
    parted = {"\t": "tabs", ",": "commas", ";": "semicolons"}[layout.delimiter]
    hint = f"columns are parted by {parted}"
    if len(cells) > 3 and layout.header is None:
        hint += "; a header (.tsv, .csv) with head, relation and tail among more names chooses three"
    return DataError(f"{place}: {found} where {wanted}", hint=hint)


def _cells(text: str, layout: ColumnLayout, place: str) -> list[str]:
    if not layout.quoted:
        return text.split(layout.delimiter)
    if '"' not in text:
        return [cell.lstrip(" ") for cell in text.split(layout.delimiter)]
    try:
        return next(csv.reader((text,), delimiter=layout.delimiter, skipinitialspace=True, strict=True))
    except csv.Error as error:
        why = "a quote that is not closed in its line" if "unexpected end" in str(error) else str(error)
        raise DataError(
            f"{place}: {why}", hint='a double quote inside a quoted name is written twice: "a ""b"" c"'
        ) from None


def _delimiter(text: str) -> str:
    """The one that gives most columns, commas before others."""
    return max(_DELIMITERS, key=text.count) if text.count(",") < 2 else ","


def _role(cell: str) -> str | None:
    return _ROLES.get(re.sub(r"[\s_-]", "", cell).casefold())

"""Blocks of tab-separated lines with a blank line after each: what CoNLL-U, CoNLL-U Plus and CoNLL-2009 share."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from strata_core.corpus.findings import Finding, Report
from strata_core.errors import DataError

COLUMN_DECLARATION = "global.columns"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a block, cut at its tabs; `line` counts from 1."""

    line: int
    cells: list[str]


@dataclass(slots=True)
class Block:
    """The lines of one sentence. `columns` are the names its file declares, or those the reader was given."""

    line: int
    columns: tuple[str, ...] | None
    comments: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    last_line: int = 0
    broken_lines: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether it has rows, and no broken line."""
        return bool(self.rows) and not self.broken_lines

    def comment(self, key: str) -> str | None:
        """The value of `# key = value`, or None where there is no such comment."""
        return next((value for comment in self.comments if (value := comment_value(comment, key)) is not None), None)


def comment_value(comment: str, key: str) -> str | None:
    """The value of a comment `key = value`, given without its #; None where it is another comment."""
    name, equals, value = comment.partition("=")
    return value.strip(" ") if equals and name.strip(" ") == key else None


def read_blocks(
    lines: Iterable[bytes], *, file: str, columns: tuple[str, ...] | None, report: Report
) -> Iterator[Block]:
    """Streams the blocks of a file; only LF and CRLF end a line, and a byte order mark at the start is dropped.

    Args:
        lines: lines with their ends, as a file open for binary reading gives them.
        file: the file's name for findings.
        columns: names of the columns where the file declares none (`# global.columns = ...` in its first line);
            None: any number of columns.
        report: takes a finding for each broken line, and for comments without words, before their block is given.
    """
    block: Block | None = None
    for number, raw in enumerate(lines, 1):
        text = _decode(raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw)
        if isinstance(text, str) and not text.strip(" "):
            if block is not None:
                _report_faults(block, file, report)
                yield block
                columns, block = block.columns, None
            continue
        if block is None:
            block = Block(line=number, columns=columns)
        _take_line(block, number, text)
    if block is not None:
        _report_faults(block, file, report)
        yield block


def require_columns(block: Block, names: tuple[str, ...], file: str) -> None:
    """Refuses a file that does not have these columns.

    Raises:
        DataError: names the columns that are missing and those declared.
    """
    declared = block.columns or ()
    missing = [name for name in names if name not in declared]
    if missing:
        raise DataError(
            f"{file}: no column {' and no column '.join(missing)}; the file declares {' '.join(declared)}",
            hint="stand-off roles go beside a treebank, not in its place" if "FORM" in missing else None,
        )


def _decode(raw: bytes) -> str | UnicodeDecodeError:
    try:
        return raw.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        return error


def _take_line(block: Block, number: int, text: str | UnicodeDecodeError) -> None:
    block.last_line = number
    if isinstance(text, UnicodeDecodeError):
        detail = f"byte {text.object[text.start]:#04x} at offset {text.start} of the line is no UTF-8"
        block.broken_lines.append((number, "not-utf8", detail))
    elif text.startswith("#"):
        comment = text[1:].strip(" ")
        block.comments.append(comment)
        declared = comment_value(comment, COLUMN_DECLARATION)
        if declared is not None and number == 1:
            block.columns = tuple(declared.split())
    else:
        row = Row(number, text.split("\t"))
        block.rows.append(row)
        fault = _column_fault(row, block.columns)
        if fault:
            block.broken_lines.append((number, *fault))


def _column_fault(row: Row, columns: tuple[str, ...] | None) -> tuple[str, str] | None:
    found = len(row.cells)
    if columns is not None and found != len(columns):
        remedy = ""
        if found < len(columns) and any(" " in cell for cell in row.cells):
            remedy = "; is there a space in place of a tab?"
        elif found > len(columns):
            remedy = f"; more columns are declared by `# {COLUMN_DECLARATION} = ...` in the first line"
        return "column-count", f"{found} columns, {len(columns)} expected{remedy}"
    if "" in row.cells:
        position = row.cells.index("")
        name = columns[position] if columns is not None else str(position + 1)
        return "empty-column", f"column {name} is empty; `_` stands for no value"
    return None


def _report_faults(block: Block, file: str, report: Report) -> None:
    sent_id = block.comment("sent_id")
    for line, kind, detail in block.broken_lines:
        report(Finding(kind, file, line, sent_id, detail, block.line))
    if block.rows or block.broken_lines:
        return
    if any(not comment.startswith(COLUMN_DECLARATION) for comment in block.comments):
        where = f"line {block.line}" if block.line == block.last_line else f"lines {block.line}-{block.last_line}"
        detail = f"{where}: comments without words"
        report(Finding("comments-without-words", file, block.line, sent_id, detail, block.line))

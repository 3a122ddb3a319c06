"""An evaluation as tables: figures in pairs, and nested ones in tables of their own."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from strata_cli.display.figures import count_text
from strata_cli.display.output import write_text
from strata_cli.display.streams import columns, is_live, printable, wants_colour
from strata_cli.display.table import write_pairs

_SHOWN_ROWS = 60


def write_evaluation(evaluation: Mapping[str, Any]) -> None:
    """Writes an evaluation (EvaluationReport.to_json) to standard output, without the tables that have no figures."""
    head = f"{evaluation['checkpoint']}, step {count_text(evaluation['step'])}"
    where = f"{evaluation['split']} of {evaluation['corpus']}"
    _write_section(printable(f"{head} on {where}"), _without_empty(evaluation["metrics"]))


def write_figures(title: str, figures: Mapping[str, Any]) -> None:
    """Writes figures to standard output under a title, nested ones as tables."""
    _write_section(printable(title), figures)


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_empty(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if not isinstance(value, (Mapping, list)) or _has_figures(value)
    }


def _has_figures(value: Any) -> bool:
    """Whether there is anything to tell: a table that has counts of 0 alone is of examples that the split lacks."""
    if isinstance(value, Mapping):
        return any(map(_has_figures, value.values()))
    if isinstance(value, list):
        return any(map(_has_figures, value))
    return value is not None and not (type(value) is int and value == 0)


def _write_section(title: str, values: Mapping[str, Any]) -> None:
    """The plain figures of a dictionary as one table, then one for each table or dictionary in it."""
    pairs = [(_words(name), _figure(value)) for name, value in values.items() if not isinstance(value, (Mapping, list))]
    nested = {name: value for name, value in values.items() if isinstance(value, (Mapping, list))}
    if pairs:
        write_pairs(title, pairs)
    for number, (name, value) in enumerate(nested.items()):
        if pairs or number:
            write_text("")
        inner = f"{title if not pairs else ''}: {_words(name)}".removeprefix(": ")
        if isinstance(value, list):
            _write_list(inner, value)
        elif _is_table(value):
            _write_rows(inner, [{"": key, **row} for key, row in value.items()])
        else:
            _write_section(inner, value)


def _write_list(title: str, values: Sequence[Any]) -> None:
    if values and all(isinstance(value, Mapping) for value in values):
        _write_rows(title, values)
    elif values:
        write_pairs(title, [(str(number), _figure(value)) for number, value in enumerate(values, 1)])


def _is_table(values: Mapping[str, Any]) -> bool:
    """Whether the values are the rows of a table: dictionaries of plain figures."""
    rows = list(values.values())
    return bool(rows) and all(
        isinstance(row, Mapping) and row and not any(isinstance(value, (Mapping, list)) for value in row.values())
        for row in rows
    )


def _write_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    headings = list(dict.fromkeys(name for row in rows for name in row))
    shown = [[_figure(row.get(name, "")) for name in headings] for row in rows[:_SHOWN_ROWS]]
    words = [_words(name) for name in headings]
    numeric = [all(not isinstance(row.get(name), str) for row in rows) for name in headings]
    if is_live(sys.stdout):
        _write_framed(title, words, shown, numeric)
    else:
        _write_aligned(title, words, shown, numeric)
    if len(rows) > _SHOWN_ROWS:
        write_text(f"and {count_text(len(rows) - _SHOWN_ROWS)} more; --json has them all")


def _write_aligned(title: str, headings: list[str], rows: list[list[str]], numeric: list[bool]) -> None:
    widths = _column_widths([headings, *rows])
    lines = [title]
    for cells in [headings, *rows]:
        aligned = zip(cells, widths, numeric, strict=True)
        line = "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in aligned)
        lines.append(line.rstrip())
    write_text("\n".join(lines))


def _write_framed(title: str, headings: list[str], rows: list[list[str]], numeric: list[bool]) -> None:
    """A table with a frame. One of figures that is too wide for the terminal is turned, so that each row is a column:
    as many of them as there is room for, and the others in tables below."""
    if not all(numeric[1:]) or _framed_width(_column_widths([headings, *rows])) <= columns():
        _write_frame(title, headings, rows, numeric)
        return
    first, *others = [max(map(len, headings)), *(max(map(len, row)) for row in rows)]
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and _framed_width([first, *others[start : stop + 1]]) <= columns():
            stop += 1
        turned = [list(cells) for cells in zip(headings, *rows[start:stop], strict=True)]
        _write_frame(title, turned[0], turned[1:], [False, *[True] * (stop - start)])
        start = stop


def _column_widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _framed_width(widths: Sequence[int]) -> int:
    """Of a table: each column has a space on both sides, and lines stand between and around columns."""
    return sum(width + 3 for width in widths) + 1


def _write_frame(title: str, headings: list[str], rows: list[list[str]], numeric: list[bool]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold")
    for heading, right in zip(headings, numeric, strict=True):
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=sys.stdout, width=columns(), no_color=not wants_colour(sys.stdout)).print(table)


def _words(name: str) -> str:
    return printable(str(name).replace("_", " "))


def _figure(value: Any) -> str:
    """A figure as people read it: counts with their thousands marked, others to four places."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count_text(value)
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1e4 else f"{value:.6g}"
    return printable(str(value))

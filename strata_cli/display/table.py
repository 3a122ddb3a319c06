"""A table of two columns: framed on a terminal, aligned lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from strata_cli.display.streams import columns, is_live, printable, wants_colour


def write_pairs(title: str, rows: Sequence[tuple[str, str]], stream: TextIO | None = None) -> None:
    """Writes names and values to a stream, standard output by default; without a terminal every row is one line."""
    stream = stream or sys.stdout
    shown = [(name, printable(value)) for name, value in rows]
    if not is_live(stream):
        width = max(len(name) for name, _ in shown)
        print("\n".join([title, *(f"{name:<{width}}  {value}" for name, value in shown)]), file=stream, flush=True)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in shown:
        table.add_row(Text(name), Text(value))
    Console(file=stream, width=columns(), no_color=not wants_colour(stream)).print(table)

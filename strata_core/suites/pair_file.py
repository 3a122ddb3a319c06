"""Pairs of one's own: a JSON Lines file, or one of columns between tabs with their names in its first line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from strata_core.errors import DataError
from strata_core.suites.pairs import Pair, numbered_lines, parsed_object, text_of

NEEDED = ("sentence_good", "sentence_bad")
KNOWN = (*NEEDED, "phenomenon", "paradigm")
"""Columns; a pair without phenomenon is of the phenomenon "all", one without paradigm of the paradigm of that name."""

_OF_BLIMP = ("UID", "field", "linguistics_term", "pairID", "simple_LM_method", "one_prefix_method", "two_prefix_method")


def read_pair_file(path: Path) -> Iterator[Pair]:
    """The pairs of a file: tabs where it ends in .tsv, else JSON Lines; each may be compressed (.gz).

    Raises:
        DataError: as PairReader; a column that is neither known nor one of BLiMP's is refused by its name.
    """
    rows = _tabbed(path) if ".tsv" in path.suffixes else _objects(path)
    for where, value in rows:
        unknown = [name for name in value if name not in (*KNOWN, *_OF_BLIMP)]
        if unknown:
            raise DataError(f"{where}: unknown column {unknown[0]!r}", hint=f"known: {', '.join(KNOWN)}, and BLiMP's")
        good, bad = (text_of(value, name, where) for name in NEEDED)
        phenomenon = str(value.get("phenomenon", value.get("linguistics_term", "all")))
        yield Pair(phenomenon, str(value.get("paradigm", value.get("UID", phenomenon))), good, bad, where)


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, line in numbered_lines(path):
        if line.strip():
            yield where, parsed_object(line, where)


def _tabbed(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    names: list[str] | None = None
    for where, line in numbered_lines(path):
        cells = line.split("\t")
        if names is None:
            names = cells
        elif len(cells) != len(names):
            raise DataError(f"{where}: {len(cells)} cells; the first line names {len(names)} columns")
        else:
            yield where, dict(zip(names, cells, strict=True))

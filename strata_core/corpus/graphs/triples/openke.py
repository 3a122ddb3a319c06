"""OpenKE's layout of a knowledge graph (https://github.com/thunlp/OpenKE): names and triples apart, as numbers.

`entity2id.txt` and `relation2id.txt` give numbers to names, `train2id.txt` and the others hold numbers. Each file
begins with a count, and the columns of triples are head, tail, relation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from strata_core.corpus.graphs.triples.knowledge_graph import COLUMNS, SPLITS, Triples, as_array, knowledge_graph
from strata_core.corpus.graphs.triples.lines import text_lines
from strata_core.corpus.sources.files import find_files
from strata_core.errors import DataError

OPENKE_COLUMNS = ("head", "tail", "relation")
OPENKE_ENTITIES = "entity2id.txt"
_OPENKE_RELATIONS = "relation2id.txt"
OPENKE_FILES = (OPENKE_ENTITIES, _OPENKE_RELATIONS, *(f"{split}2id.txt" for split in SPLITS))


def read_openke(folder: Path, columns: Sequence[str] = OPENKE_COLUMNS) -> Triples:
    """Reads a folder in OpenKE's layout.

    Args:
        folder: with OPENKE_FILES.
        columns: of triples, in their order.

    Raises:
        DataError: a file is missing, cannot be read, or has a line that is no name or triple; a number that is out of
            range; a count that is not that of the lines.
    """
    order = [columns.index(name) for name in COLUMNS]
    files = tuple(folder / name for name in OPENKE_FILES)
    entities, relations = _read_names(files[0]), _read_names(files[1])
    limits = (len(entities), len(relations), len(entities))
    raw = {split: _read_triples(path, order, limits) for split, path in zip(SPLITS, files[2:], strict=True)}
    return knowledge_graph(entities, relations, raw, files)


def _read_names(path: Path) -> tuple[str, ...]:
    names: dict[int, str] = {}
    rows = _rows(path, "\t")
    count = _read_count(path, rows)
    for line, cells in rows:
        if len(cells) != 2 or not _is_number(cells[1]):
            raise DataError(f"{path}:{line}: not a name, a tab and a number")
        number = int(cells[1])
        if number >= count or number in names:
            state = "given already" if number in names else f"not below the count {count}"
            raise DataError(f"{path}:{line}: number {number} is {state}")
        names[number] = cells[0]
    if len(names) != count:
        raise DataError(f"{path}: {len(names)} names where its first line says {count}")
    return tuple(names[number] for number in range(count))


def _read_triples(path: Path, order: list[int], limits: tuple[int, int, int]) -> np.ndarray:
    rows = _rows(path, None)
    count = _read_count(path, rows)
    found = []
    for line, cells in rows:
        if len(cells) != 3 or not all(map(_is_number, cells)):
            raise DataError(f"{path}:{line}: not three numbers")
        triple = [int(cells[place]) for place in order]
        for name, number, limit in zip(COLUMNS, triple, limits, strict=True):
            if number >= limit:
                raise DataError(
                    f"{path}:{line}: {name} {number} of {limit}", hint="are the columns in the order that was said?"
                )
        found.append(triple)
    if len(found) != count:
        raise DataError(f"{path}: {len(found)} triples where its first line says {count}")
    return as_array(found)


def _read_count(path: Path, rows: Iterator[tuple[int, list[str]]]) -> int:
    _, cells = next(rows, (1, [""]))
    if len(cells) != 1 or not _is_number(cells[0]):
        raise DataError(f"{path}:1: {' '.join(cells)!r} where the layout of OpenKE has a count")
    return int(cells[0])


def _rows(path: Path, separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not blank, from 1, cut at a separator, or for None at any white space."""
    if not path.exists():
        raise DataError(f"{path}: missing", hint=f"OpenKE's layout is {', '.join(OPENKE_FILES)}")
    for line, text in text_lines(find_files([path], format="text")[0][0]):
        yield line, text.split(separator)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10

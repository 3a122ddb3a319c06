"""Knowledge graphs as files of triples, split into train, valid and test.

Two layouts are read: `train.txt`, `valid.txt`, `test.txt` with a triple on each line, parted by tabs, of names or of
numbers, which are names like others; and that of OpenKE (https://github.com/thunlp/OpenKE), where `entity2id.txt` and
`relation2id.txt` give numbers to names, and `train2id.txt` and the others hold numbers; its files begin with a count,
and its columns are head, tail, relation.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from strata_core.errors import DataError, UsageError

COLUMNS = ("head", "relation", "tail")
"""Of the layout of names, and of the arrays made here."""

OPENKE_COLUMNS = ("head", "tail", "relation")
SPLITS = ("train", "valid", "test")
_OPENKE_ENTITIES = "entity2id.txt"
_OPENKE_RELATIONS = "relation2id.txt"


@dataclass(frozen=True)
class Triples:
    """A knowledge graph.

    Attributes:
        entities, relations: names in the order of their numbers; in the layout of names, that of first occurrence in
            train, valid and test.
        splits: for "train", "valid" and "test" int32 [triples, 3]: head, relation, tail; no triple twice in one split.
        repeated: how many triples of each split came again in that split and were dropped.
        known: how many triples of "valid" and "test" are in an earlier split as well; they are kept.
        unseen_entities: how many entities of "valid" and "test" never occur in "train"; they are kept.
        unseen_relations: the same of relations.
        files: what was read.
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    splits: dict[str, np.ndarray]
    repeated: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    unseen_entities: dict[str, int] = field(default_factory=dict)
    unseen_relations: dict[str, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


def read_triples(folder: Path, *, columns: Sequence[str] | None = None) -> Triples:
    """Reads a folder of triples in either layout.

    Args:
        folder: with the files of one layout.
        columns: "head", "relation" and "tail" in the order of the columns; None for the usual one of the layout.

    Raises:
        UsageError: the folder is not there, or `columns` does not have each column once.
        DataError: a file is missing, cannot be read, or has a line that is no triple; a number that is out of range; a
            count that is not that of the lines.
    """
    if columns is not None and sorted(columns) != sorted(COLUMNS):
        raise UsageError(f"columns {' '.join(columns)}", hint=f"each of {', '.join(COLUMNS)} once, in their order")
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder", hint="triples are read from a folder of three files")
    if (folder / _OPENKE_ENTITIES).exists():
        return _read_openke(folder, _places(columns or OPENKE_COLUMNS))
    return _read_named(folder, _places(columns or COLUMNS))


def triples_files(folder: Path) -> tuple[Path, ...]:
    """The files of triples that a folder in its layout has: those of train, valid and test."""
    suffix = "2id.txt" if (folder / _OPENKE_ENTITIES).exists() else ".txt"
    return tuple(folder / f"{split}{suffix}" for split in SPLITS)


def _places(columns: Sequence[str]) -> list[int]:
    """Where head, relation and tail stand."""
    return [columns.index(name) for name in COLUMNS]


def _read_named(folder: Path, order: list[int]) -> Triples:
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    raw = {}
    files = triples_files(folder)
    for split, path in zip(SPLITS, files, strict=True):
        rows = []
        for line, cells in _rows(path, "\t"):
            if len(cells) != 3 or not all(cells):
                found = f"{len(cells)} columns" if len(cells) != 3 else "an empty column"
                raise DataError(f"{path}:{line}: {found} where a triple has 3 names", hint="columns are parted by tabs")
            head, relation, tail = (cells[place] for place in order)
            rows.append(
                (
                    entities.setdefault(head, len(entities)),
                    relations.setdefault(relation, len(relations)),
                    entities.setdefault(tail, len(entities)),
                )
            )
        raw[split] = _as_array(rows)
    return _checked(tuple(entities), tuple(relations), raw, files)


def _read_openke(folder: Path, order: list[int]) -> Triples:
    entities = _read_openke_names(folder / _OPENKE_ENTITIES)
    relations = _read_openke_names(folder / _OPENKE_RELATIONS)
    files = triples_files(folder)
    limits = (len(entities), len(relations), len(entities))
    raw = {split: _read_openke_triples(path, order, limits) for split, path in zip(SPLITS, files, strict=True)}
    return _checked(entities, relations, raw, (folder / _OPENKE_ENTITIES, folder / _OPENKE_RELATIONS, *files))


def _read_openke_names(path: Path) -> tuple[str, ...]:
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


def _read_openke_triples(path: Path, order: list[int], limits: tuple[int, int, int]) -> np.ndarray:
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
    return _as_array(found)


def _read_count(path: Path, rows: Iterator[tuple[int, list[str]]]) -> int:
    _, cells = next(rows, (1, [""]))
    if len(cells) != 1 or not _is_number(cells[0]):
        raise DataError(f"{path}:1: {' '.join(cells)!r} where the layout of OpenKE has a count")
    return int(cells[0])


def _rows(path: Path, separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not blank, from 1, cut at a separator, or for None at any white space."""
    try:
        data = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except FileNotFoundError:
        raise DataError(f"{path}: missing", hint=f"a folder of triples has {', '.join(SPLITS)}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    for line, raw in enumerate(data.split(b"\n"), 1):
        try:
            text = raw.removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{path}:{line}: byte {error.object[error.start]:#04x} is not UTF-8") from None
        if text.strip():
            yield line, text.split(separator)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _as_array(rows: list[tuple[int, int, int]] | list[list[int]]) -> np.ndarray:
    return np.asarray(rows, dtype=np.int32).reshape(-1, 3)


def _checked(
    entities: tuple[str, ...], relations: tuple[str, ...], raw: dict[str, np.ndarray], files: tuple[Path, ...]
) -> Triples:
    """Drops what is there twice and counts what a person should know of."""
    if len(raw["train"]) == 0:
        raise DataError(f"{files[0].parent}: no triples to train on")
    sizes = (len(entities), len(relations), len(entities))
    splits = {split: triples[_first_of_each(_keys(triples, sizes))] for split, triples in raw.items()}
    seen_entities = np.unique(splits["train"][:, [0, 2]])
    seen_relations = np.unique(splits["train"][:, 1])
    held_out = {split: splits[split] for split in SPLITS if split != "train"}
    earlier = {"valid": splits["train"], "test": np.concatenate([splits["train"], splits["valid"]])}
    return Triples(
        entities,
        relations,
        splits,
        repeated={split: len(raw[split]) - len(splits[split]) for split in SPLITS},
        known={
            split: int(np.isin(_keys(triples, sizes), _keys(earlier[split], sizes)).sum())
            for split, triples in held_out.items()
        },
        unseen_entities={
            split: len(np.setdiff1d(triples[:, [0, 2]], seen_entities)) for split, triples in held_out.items()
        },
        unseen_relations={
            split: len(np.setdiff1d(triples[:, 1], seen_relations)) for split, triples in held_out.items()
        },
        files=files,
    )


def _keys(triples: np.ndarray, sizes: tuple[int, int, int]) -> np.ndarray:
    """int64 [triples]: one number for each triple, the same for the same."""
    heads, relations, tails = triples.astype(np.int64).T
    return (heads * sizes[1] + relations) * sizes[2] + tails


def _first_of_each(keys: np.ndarray) -> np.ndarray:
    return np.sort(np.unique(keys, return_index=True)[1])

"""A knowledge graph read from its files: names become numbers in the order in which they first occur."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from strata_core.corpus.graphs.triples.columns import TAB_SEPARATED, find_layout, header_places, read_rows
from strata_core.corpus.graphs.triples.files import CSV, N_TRIPLES, FoundTriples, TriplesFile, find_triples
from strata_core.corpus.graphs.triples.knowledge_graph import COLUMNS, SPLITS, Triples, as_array, knowledge_graph
from strata_core.corpus.graphs.triples.lines import text_lines
from strata_core.corpus.graphs.triples.n_triples import NotATriple, is_blank_node, is_literal, parse_line
from strata_core.corpus.graphs.triples.openke import OPENKE_COLUMNS, read_openke
from strata_core.errors import DataError, UsageError


def read_triples(
    source: Path | Sequence[Path] | FoundTriples, *, columns: Sequence[str] | None = None, val_fraction: float = 0.0
) -> Triples:
    """Reads a knowledge graph.

    Args:
        source: a folder, or files, or what `find_triples` made of them.
        columns: "head", "relation" and "tail" in the order of the columns; None for the usual one.
        val_fraction: share of the training triples that become "valid", where no file is for it.

    Raises:
        UsageError: a path is not there, or `columns` does not have each column once, or there are none.
        DataError: a file is missing, cannot be read, or has a line that is no triple; a number that is out of range; a
            count that is not that of the lines.
    """
    if columns is not None and sorted(columns) != sorted(COLUMNS):
        raise UsageError(f"columns {' '.join(columns)}", hint=f"each of {', '.join(COLUMNS)} once, in their order")
    if not isinstance(source, FoundTriples):
        source = find_triples([source] if isinstance(source, Path) else source)
    if source.openke is not None:
        return read_openke(source.openke, columns or OPENKE_COLUMNS)
    if columns is not None and all(file.form == N_TRIPLES for file in source.files):
        raise UsageError("an order of columns is given for N-Triples", hint="they are subject, predicate and object")
    return _Reading(columns).read(source.files, val_fraction)


class _Reading:
    """The files of one graph being read."""

    def __init__(self, columns: Sequence[str] | None) -> None:
        self._columns = columns
        self._entities: dict[str, int] = {}
        self._relations: dict[str, int] = {}
        self._rows: dict[str, list[tuple[int, int, int]]] = {split: [] for split in SPLITS}
        self._notices: list[str] = []
        self._without_header: set[TriplesFile] = set()
        self._first_rows: list[tuple[TriplesFile, int]] = []
        self._headers: dict[str, list[str]] = {}
        self._labels: dict[str, set[Path]] = {}
        self._n_literals = 0

    def read(self, files: Sequence[TriplesFile], val_fraction: float) -> Triples:
        """The graph in files, which stand in the order of their splits."""
        for file in files:
            self._read(file)
        raw = {split: as_array(rows) for split, rows in self._rows.items()}
        entities, relations = tuple(self._entities), tuple(self._relations)
        headers = self._header_rows(raw)
        if headers:
            entities, relations, raw = _without(headers, entities, relations, raw)
        self._tell_of_terms()
        return knowledge_graph(
            entities,
            relations,
            raw,
            tuple(file.file.path for file in files),
            without_file=[split for split in SPLITS if all(file.split != split for file in files)],
            val_fraction=val_fraction,
            notices=(*self._notices, *(f"{', '.join(names)}: {text}" for text, names in self._headers.items())),
        )

    def _read(self, file: TriplesFile) -> None:
        rows = self._rows[file.split]
        first = len(rows)
        entities, relations = self._entities, self._relations
        for head, relation, tail in self._named(file):
            rows.append(
                (
                    entities.setdefault(head, len(entities)),
                    relations.setdefault(relation, len(relations)),
                    entities.setdefault(tail, len(entities)),
                )
            )
        if file in self._without_header and len(rows) > first:
            self._first_rows.append((file, first))

    def _named(self, file: TriplesFile) -> Iterator[tuple[str, str, str]]:
        if file.form == N_TRIPLES:
            return self._n_triples(file)
        if not file.may_have_header:
            self._tell_of_likely_header(file)
            return read_rows(file.file, TAB_SEPARATED, self._columns)
        layout = find_layout(file.file, is_csv=file.form == CSV)
        if layout.header is None:
            self._without_header.add(file)
        else:
            by_name = None if self._columns else layout.by_name
            self._note_header(file, layout.header, by_name)
        return read_rows(file.file, layout, self._columns)

    def _n_triples(self, file: TriplesFile) -> Iterator[tuple[str, str, str]]:
        for line, text in text_lines(file.file):
            try:
                triple = parse_line(text)
            except NotATriple as fault:
                raise DataError(
                    f"{file.file.shown}:{line}: {fault}", hint="a line of N-Triples is <subject> <predicate> <object> ."
                ) from None
            if triple is not None:
                for name in (triple[0], triple[2]):
                    if is_blank_node(name):
                        self._labels.setdefault(name, set()).add(file.file.path)
                self._n_literals += is_literal(triple[2])
                yield triple

    def _tell_of_likely_header(self, file: TriplesFile) -> None:
        _, text = next(text_lines(file.file), (1, ""))
        if header_places(text.split("\t")) is not None:
            self._notices.append(
                f"{file.file.shown}: the first line looks like names of columns and is read as a triple; "
                "delete it, or name the file .tsv"
            )

    def _header_rows(self, raw: dict[str, np.ndarray]) -> dict[str, list[int]]:
        """For each split the rows that are headers under names that are not known: the first of a .tsv or .csv
        file for training shares no name with any triple, while every other line shares one with others."""
        if not self._first_rows or self._headers or self._first_rows[0][0].split != "train":
            return {}
        header = raw["train"][self._first_rows[0][1]]
        same = [(file, row) for file, row in self._first_rows if (raw[file.split][row] == header).all()]
        places: dict[str, list[int]] = {split: [] for split in SPLITS}
        for file, row in same:
            places[file.split].append(row)
        others = np.concatenate([np.delete(triples, places[split], axis=0) for split, triples in raw.items()])
        if len(others) < 2 or np.isin(others[:, [0, 2]], header[[0, 2]]).any() or (others[:, 1] == header[1]).any():
            return {}
        degrees = np.bincount(others[:, [0, 2]].ravel(), minlength=len(self._entities))
        uses = np.bincount(others[:, 1], minlength=len(self._relations))
        if ((degrees[others[:, [0, 2]]] == 1).all(1) & (uses[others[:, 1]] == 1)).any():
            return {}
        names, relations = tuple(self._entities), tuple(self._relations)
        cells = (names[header[0]], relations[header[1]], names[header[2]])
        for file, _ in same:
            self._note_header(file, cells, None)
        return places

    def _note_header(self, file: TriplesFile, cells: Sequence[str], by_name: tuple[int, int, int] | None) -> None:
        if by_name is None:
            order = ", ".join(self._columns or COLUMNS)
            text = f"the first line ({', '.join(cells)}) is a header; columns are read as {order}"
        else:
            named = ", ".join(f"{role} is {cells[place]!r}" for role, place in zip(COLUMNS, by_name, strict=True))
            left = [cell for place, cell in enumerate(cells) if place not in by_name]
            text = f"columns by the header: {named}" + (f"; not read: {', '.join(left)}" if left else "")
        self._headers.setdefault(text, []).append(file.file.shown)

    def _tell_of_terms(self) -> None:
        """What stands in N-Triples beside IRIs."""
        shared = sum(len(files) > 1 for files in self._labels.values())
        if shared:
            self._notices.append(f"blank nodes: {shared:,} labels are in several files, each taken for one entity")
        if self._n_literals:
            self._notices.append(f"literals: {self._n_literals:,} triples end in one; each is an entity like others")


def _without(
    headers: dict[str, list[int]], entities: tuple[str, ...], relations: tuple[str, ...], raw: dict[str, np.ndarray]
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, np.ndarray]]:
    """The graph without rows that are headers, and without the names that only they have."""
    raw = {split: np.delete(triples, headers[split], axis=0) for split, triples in raw.items()}
    left = np.concatenate(list(raw.values()))
    kept_entities, kept_relations = np.unique(left[:, [0, 2]]), np.unique(left[:, 1])
    for triples in raw.values():
        triples[:, [0, 2]] = np.searchsorted(kept_entities, triples[:, [0, 2]])
        triples[:, 1] = np.searchsorted(kept_relations, triples[:, 1])
    return tuple(entities[i] for i in kept_entities), tuple(relations[i] for i in kept_relations), raw

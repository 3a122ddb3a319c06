"""Queries about the links of one knowledge graph, as JSON Lines.

    {"id": "q1", "head": "aspirin", "relation": "treats"}
    {"id": "q2", "relation": "treats", "tail": "pain"}

The end that is left out, or null, is asked for. Names are those of the corpus. Without an id the line's number is one.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from strata_core.corpus.graphs.jsonl import GraphFault, json_object, read_lines
from strata_core.corpus.graphs.names import GraphNames, numbers_by_name
from strata_core.tasks.query_files import whole_queries

_LIKE = 'a line is a query: {"head": "ENTITY", "relation": "RELATION"}, or with "tail" in place of "head"'
_MOST_COMPARED_NAMES = 100_000
"""Unknown names are compared with no more known ones than this in all: it takes seconds in large graphs."""


@dataclass(frozen=True)
class LinkQuery:
    """What a relation leads to from an entity, or what leads by it to the entity.

    Attributes:
        id: as given, or the number of the line.
        entity: the end that is given, by its number.
        relation: by its number, below R.
        asks_for_tail: whether the entity is the head, and the tail is asked for.
    """

    id: str | int
    entity: int
    relation: int
    asks_for_tail: bool


def read_link_queries(file: str, names: GraphNames) -> list[LinkQuery]:
    """All queries of a JSON Lines file, or of standard input ("-").

    Args:
        file: its path; may be compressed (.gz, .zst).
        names: of the corpus.

    Raises:
        UsageError: there is no such file.
        DataError: it cannot be read, has no query, or queries in it cannot be used; they are listed.
    """

    def read(lines: Iterable[bytes], shown: str) -> Iterator[LinkQuery | GraphFault]:
        return read_lines(lines, file=shown, parse=_Parser(names).parse)

    return whole_queries(file, read, like=_LIKE)


def _several(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:3]))
    return f"{len(numbers)} numbers ({shown}{', ...' if len(numbers) > 3 else ''})"


class _Parser:
    def __init__(self, names: GraphNames) -> None:
        self._entities = numbers_by_name(names.entities)
        self._relations = numbers_by_name(names.relations)
        self._n_compared = 0

    def parse(self, line: bytes, file: str, number: int) -> LinkQuery | GraphFault:
        try:
            record = json_object(line)
        except ValueError as error:
            return GraphFault(file, number, None, (str(error),))
        faults: list[str] = []
        identifier = record.get("id", number)
        if "id" in record and not isinstance(identifier, str):
            faults.append(f"id is {identifier!r}, not a string")
        given = [end for end in ("head", "tail") if record.get(end) is not None]
        if len(given) != 1:
            faults.append("head and tail are both given" if given else "neither head nor tail is given")
        entities = [self._number(record, end, self._entities, faults) for end in given]
        relation = self._number(record, "relation", self._relations, faults)
        if faults:
            return GraphFault(file, number, identifier if isinstance(identifier, str) else None, tuple(faults))
        return LinkQuery(identifier, entities[0], relation, asks_for_tail=given[0] == "head")

    def _number(self, record: dict[str, Any], key: str, numbers: dict[str, list[int]], faults: list[str]) -> int:
        """The number that goes with a name; where there is none the fault is noted, and the number means nothing."""
        name = record.get(key)
        if isinstance(name, str) and name in numbers:
            if len(numbers[name]) > 1:
                faults.append(f"{key} {name!r} is the name of {_several(numbers[name])} and tells none of them")
            return numbers[name][0]
        if name is None:
            faults.append(f"{key} is absent")
        elif isinstance(name, str):
            faults.append(f"unknown {key} {name!r}{self._suggestion(name, numbers)}")
        else:
            faults.append(f"{key} is {name!r}, not a name")
        return 0

    def _suggestion(self, name: str, known: Collection[str]) -> str:
        self._n_compared += len(known)
        if self._n_compared > _MOST_COMPARED_NAMES:
            return ""
        near = difflib.get_close_matches(name, known, n=1)
        return f", did you mean {near[0]!r}?" if near else ""

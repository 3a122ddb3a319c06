"""The relations, node types and labels that files of graphs (graph_jsonl) use, numbered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from strata_core.corpus.graphs.jsonl import BACKWARDS, record_of
from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import DataError

_ONLY_RELATION = "edge"
_ANY_NODE = "node"
_MOST_NUMBERS = 1 << 20


def names_in_lines(lines: Iterable[bytes]) -> GraphNames:
    """What the records of training use: names in alphabetical order, or the numbers from 0 to the largest.

    Edges without a relation have the relation "edge", nodes without a type the type "node"; the latter is number 0.
    Records that are none, and parts of them that are not understood, are passed over: reading them refuses them.

    Args:
        lines: of all training files.

    Raises:
        DataError: relations, node types or labels go by name in one place and by number in another.
    """
    relations, node_types, targets = _Used("relations"), _Used("node types"), _Used("targets")
    some_untyped = False
    for record in filter(None, map(record_of, lines)):
        for edge in _list(record.get("edges")):
            if isinstance(edge, list) and len(edge) in (2, 3):
                relations.add(edge[1] if len(edge) == 3 else _ONLY_RELATION)
        for step in _steps(record.get("query")):
            relations.add(step.removesuffix(BACKWARDS) if isinstance(step, str) else step)
        for node_type in _list(record.get("node_types")):
            node_types.add(node_type)
        some_untyped = some_untyped or "node_types" not in record
        targets.add(record.get("target", record.get("y")))
    types = node_types.names()
    if some_untyped and not node_types.are_numbers:
        types = (_ANY_NODE, *(name for name in types if name != _ANY_NODE))
    return GraphNames(relations.names() or (_ONLY_RELATION,), types, targets=targets.names())


def _steps(query: Any) -> list[Any]:
    branches = _list(query.get("branches")) if isinstance(query, dict) else []
    return [step for branch in branches if isinstance(branch, dict) for step in _list(branch.get("steps"))]


class _Used:
    """Names or numbers that were met."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._names: set[str] = set()
        self._largest = -1

    def add(self, value: Any) -> None:
        if isinstance(value, str):
            self._names.add(value)
        elif isinstance(value, int) and not isinstance(value, bool) and value < _MOST_NUMBERS:
            self._largest = max(self._largest, value)

    @property
    def are_numbers(self) -> bool:
        return self._largest >= 0

    def names(self) -> tuple[str, ...]:
        if self._names and self.are_numbers:
            raise DataError(
                f"{self._what} are given by name ({min(self._names)}) and by number ({self._largest})",
                hint="give all of them by name",
            )
        return tuple(sorted(self._names)) or tuple(map(str, range(self._largest + 1)))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

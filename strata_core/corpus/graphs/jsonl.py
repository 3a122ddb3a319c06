"""Graphs with questions as JSON Lines: what a person writes by hand or another program makes.

    {"id": "g1", "num_nodes": 3, "edges": [[0, "parent", 1], [1, "parent", 2]],
     "query": {"mode": "entity", "branches": [{"start": 0, "steps": ["parent", "parent"]}]},
     "status": "supported", "answers": [2]}

A query of mode "relation" asks for the label between two nodes, the second of them beside "branches":

    {"mode": "relation", "branches": [{"start": 0}], "end": 2}

`num_nodes` is never guessed from the edges. An edge is [source, relation, destination] with a relation by name or
number, or [source, destination] where there is but one relation. A step of a query may be a relation with `^-1` behind
its name: walked backwards. "query", "node_types", and of the labels "status", "answers", "number", "target" (or "y")
may be absent.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from strata_core.corpus.graphs.example import Branch, Edge, GraphExample, Mode, Query, Status, example_faults
from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import DataError, first_problems

BACKWARDS = "^-1"
"""Behind the name of a relation in a step of a query: walked backwards."""

CORRECT_OR_SKIP = "correct them, or leave them out with --on-error skip"
"""The remedy for faults in the examples of a corpus."""

_LABELS = ("status", "answers", "number", "target", "y")
_LARGEST_GRAPH = 1 << 24
_SHOWN_CHARACTERS = 40


class _Identified(Protocol):
    @property
    def id(self) -> str | int | None: ...


Read = TypeVar("Read", bound=_Identified)


@dataclass(frozen=True, slots=True)
class GraphFault:
    """A line that gives no example: which, and all that is wrong with it."""

    file: str
    line: int
    id: str | int | None
    details: tuple[str, ...]

    def __str__(self) -> str:
        name = f" (id {self.id})" if self.id is not None else ""
        return f"{self.file}:{self.line}{name}: {'; '.join(self.details)}"


def read_graph_lines(
    lines: Iterable[bytes],
    *,
    file: str,
    names: GraphNames,
    asks: bool = True,
    labelled: bool = True,
    check: Callable[[GraphExample], Sequence[str]] = lambda example: (),
) -> Iterator[GraphExample | GraphFault]:
    """Streams the examples of a file, and a fault in the place of each line that gives none.

    Args:
        lines: lines with their ends, as a file open for binary reading gives them.
        file: the file's name for messages.
        names: of relations, node types and targets, of the model or corpus that the examples are for.
        asks: whether an example without a query is a fault; if not, its query has Mode.NOTHING.
        labelled: whether labels are read; if not, they are passed over unseen, and may be any.
        check: what else is wrong with an example that is well formed, in words.
    """
    yield from read_lines(lines, file=file, parse=_Parser(names, asks, labelled, check).parse)


def read_lines(
    lines: Iterable[bytes], *, file: str, parse: Callable[[bytes, str, int], Read | GraphFault]
) -> Iterator[Read | GraphFault]:
    """Streams what is made of each line that is not blank; an id that comes again is a fault.

    Args:
        lines: lines with their ends, as a file open for binary reading gives them.
        file: the file's name for messages.
        parse: called with a line, the file's name and the line's number from 1.
    """
    first_lines: dict[str | int, int] = {}
    for number, raw in enumerate(lines, 1):
        line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        if not line.strip():
            continue
        read = parse(line, file, number)
        if read.id is not None and read.id in first_lines:
            read = GraphFault(file, number, read.id, (f"the id of line {first_lines[read.id]} again",))
        elif read.id is not None:
            first_lines[read.id] = number
        yield read


def record_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line, a byte order mark before it left out; None where there is none."""
    try:
        return json_object(line.removeprefix(codecs.BOM_UTF8))
    except ValueError:
        return None


def json_object(line: bytes) -> dict[str, Any]:
    """The JSON object on a line.

    Raises:
        ValueError: there is none; it says why.
    """
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError:
        raise _Refused("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _Refused(_json_fault(error)) from None
    except (ValueError, RecursionError):
        raise _Refused("not JSON that can be read: a number is too long, or it is nested too deeply") from None
    if not isinstance(record, dict):
        raise _Refused("not a JSON object")
    return record


def _json_fault(error: json.JSONDecodeError) -> str:
    rest = error.doc[error.pos :].strip()
    if not rest:
        return "not JSON: the line ends before the record does"
    shown = rest if len(rest) <= _SHOWN_CHARACTERS else f"{rest[:_SHOWN_CHARACTERS]}..."
    return f"not JSON from column {error.colno} on: {shown!r}"


def refuse_faults(faults: list[GraphFault], *, remedy: str = CORRECT_OR_SKIP) -> None:
    """Strict reading: there may be no fault.

    Args:
        faults: what was found.
        remedy: what can be done about them.

    Raises:
        DataError: its problems name the examples with a fault, the first of them one by one.
    """
    if not faults:
        return
    count = "1 example cannot" if len(faults) == 1 else f"{len(faults):,} examples cannot"
    raise DataError(f"{count} be used", problems=first_problems(faults), hint=remedy)


class _Refused(ValueError):
    """A part of a record that cannot be understood."""


class _Parser:
    def __init__(
        self, names: GraphNames, asks: bool, labelled: bool, check: Callable[[GraphExample], Sequence[str]]
    ) -> None:
        self._names = names
        self._asks = asks
        self._labelled = labelled
        self._check = check
        self._relations = {name: number for number, name in enumerate(names.relations)}
        self._node_types = {name: number for number, name in enumerate(names.node_types)}
        self._targets = {name: number for number, name in enumerate(names.targets)}

    def parse(self, line: bytes, file: str, number: int) -> GraphExample | GraphFault:
        identifier = None
        try:
            record = json_object(line)
            identifier = record.get("id")
            if not isinstance(identifier, str):
                identifier = None
                raise _Refused(f"id is {record.get('id')!r}, not a string")
            if not self._labelled:
                record = {key: value for key, value in record.items() if key not in _LABELS}
            example = self._example(record, identifier)
        except _Refused as refusal:
            return GraphFault(file, number, identifier, (str(refusal),))
        faults = example_faults(example, self._names) or self._check(example)
        return GraphFault(file, number, identifier, tuple(faults)) if faults else example

    def _example(self, record: dict[str, Any], identifier: str) -> GraphExample:
        target = record.get("target", record.get("y"))
        return GraphExample(
            id=identifier,
            node_types=self._types(record),
            edges=tuple(self._edge(value) for value in _list(record, "edges")),
            query=self._query(record.get("query")),
            status=_status(record.get("status")),
            answers=tuple(_integer(value, "an answer") for value in _list(record, "answers", ())),
            number=None if record.get("number") is None else _integer(record["number"], "number"),
            target=None if target is None else _named(target, self._targets, "target"),
        )

    def _types(self, record: dict[str, Any]) -> tuple[int, ...]:
        if "num_nodes" not in record:
            raise _Refused("num_nodes is absent; the number of nodes is not guessed from the edges")
        n_nodes = _integer(record["num_nodes"], "num_nodes")
        if not 0 <= n_nodes <= _LARGEST_GRAPH:
            raise _Refused(f"num_nodes is {n_nodes}; it is from 1 to {_LARGEST_GRAPH}")
        if "node_types" not in record:
            return (0,) * n_nodes
        types = _list(record, "node_types")
        if len(types) != n_nodes:
            raise _Refused(f"{len(types)} node types for {n_nodes} nodes")
        return tuple(_named(value, self._node_types, "node type") for value in types)

    def _edge(self, value: Any) -> Edge:
        if not isinstance(value, list) or len(value) not in (2, 3):
            raise _Refused(f"an edge is {value!r}, not [source, relation, destination]")
        if len(value) == 2 and len(self._names.relations) != 1:
            raise _Refused(f"edge {value!r} has no relation, and there are {len(self._names.relations)}")
        relation = 0 if len(value) == 2 else _named(value[1], self._relations, "relation")
        return _integer(value[0], "a node"), relation, _integer(value[-1], "a node")

    def _query(self, value: Any) -> Query:
        if value is None:
            if self._asks:
                raise _Refused("query is absent")
            return Query(Mode.NOTHING)
        if not isinstance(value, dict):
            raise _Refused(f"query is {value!r}, not an object")
        if "branches" not in value:
            raise _Refused('the query has no "branches", a list of {"start": NODE, "steps": [RELATION, ...]}')
        end = value.get("end")
        mode = _member(value.get("mode", "entity"), Mode, "mode")
        branches = tuple(self._branch(branch) for branch in _list(value, "branches"))
        if mode == Mode.RELATION and end is None:
            raise _Refused('a query of mode relation has its second node as "end", beside "branches"')
        return Query(mode, branches, None if end is None else _integer(end, "end"))

    def _branch(self, value: Any) -> Branch:
        if not isinstance(value, dict):
            raise _Refused(f"a branch is {value!r}, not an object")
        if "start" not in value:
            raise _Refused('a branch has no "start"')
        if "end" in value:
            raise _Refused('a branch has an "end"; "end" stands beside "branches"')
        return Branch(_integer(value.get("start"), "start"), tuple(map(self._step, _list(value, "steps", ()))))

    def _step(self, value: Any) -> int:
        if isinstance(value, str) and value not in self._relations and value.endswith(BACKWARDS):
            forwards = _named(value.removesuffix(BACKWARDS), self._relations, "relation")
            return forwards + len(self._names.relations)
        return _named(value, self._relations, "relation")


def _list(record: dict[str, Any], key: str, default: Any = None) -> Any:
    value = record.get(key, default)
    if not isinstance(value, list | tuple):
        raise _Refused(f"{key} is {value!r}, not a list")
    return value


def _integer(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Refused(f"{what} is {value!r}, not a whole number")
    return value


def _named(value: Any, numbers: dict[str, int], what: str) -> int:
    """A number given as such or by name; whether a number exists is checked with the rest of the example."""
    if isinstance(value, str):
        if value not in numbers:
            raise _Refused(f"unknown {what} {value!r}")
        return numbers[value]
    return _integer(value, what)


def _status(value: Any) -> Status:
    return Status.UNKNOWN if value is None else Status(_member(value, Status, "status"))


def _member(value: Any, kinds: Any, what: str) -> Any:
    words = {kind.name.lower(): kind for kind in kinds}
    if not isinstance(value, str) or value not in words:
        raise _Refused(f"{what} is {value!r}, not one of {', '.join(words)}")
    return words[value]

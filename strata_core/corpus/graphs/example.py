"""One question about one graph, with all that is known of the answer; and what makes such an example unusable."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import DataError

Edge = tuple[int, int, int]
"""Source node, relation, destination node."""

_LARGEST = 2**31 - 1


class Mode(enum.IntEnum):
    """What a query asks for."""

    ENTITY = 0
    """The nodes that its branches lead to; those that all lead to, where there are several."""
    COUNT = 1
    """How many nodes its branch leads to."""
    LARGEST = 2
    """The largest level among the nodes its branch leads to."""
    SMALLEST = 3
    """The smallest level among the nodes its branch leads to."""
    RELATION = 4
    """The label that relates its start to its end."""
    NOTHING = 5
    """There is a graph and no question."""


NUMBER_MODES = (Mode.COUNT, Mode.LARGEST, Mode.SMALLEST)


class Status(enum.IntEnum):
    """What the graph says to a query."""

    SUPPORTED = 0
    REFUTED = 1
    """Each way through the query's steps goes over a link that the graph denies."""
    NOT_ENOUGH_INFO = 2
    UNKNOWN = 255
    """Nobody said."""


N_STATUSES = 3
"""What can be said; lower numbers are of these, and only UNKNOWN is higher."""


class PathKind(enum.IntEnum):
    """What a path is to the query."""

    COMPETING = 0
    SUPPORTING = 1
    CONTRADICTING = 2
    """It would support an answer but for a link that is denied."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Relations to follow one after another from a node. Relation r + (number of relations) is r walked backwards."""

    start: int
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A question. `end` is the second node of a question about two."""

    mode: Mode
    branches: tuple[Branch, ...] = ()
    end: int | None = None


@dataclass(frozen=True, slots=True)
class GraphPath:
    """Edges of the graph, by number, in walking order from the start of a branch."""

    kind: PathKind
    branch: int
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GraphExample:
    """A graph, a query and its labels.

    Attributes:
        id: names the example in messages.
        node_types: for each node the number of its type, so also how many nodes there are.
        edges: in any order; self-loops and parallel edges are edges like others.
        query: what is asked.
        status: what the graph says to it.
        answers: nodes, where nodes are asked for or counted.
        number: for NUMBER_MODES.
        target: number of a label, for Mode.RELATION.
        paths: supporting, competing and contradicting ones.
        supported_probability: chance that it is supported, to one who knows how labels come about; None: not known.
        twin: index, in the same split, of the supported example that this one lacks an edge of.
    """

    id: str
    node_types: tuple[int, ...]
    edges: tuple[Edge, ...]
    query: Query
    status: Status = Status.UNKNOWN
    answers: tuple[int, ...] = ()
    number: int | None = None
    target: int | None = None
    paths: tuple[GraphPath, ...] = ()
    supported_probability: float | None = None
    twin: int | None = None


def example_faults(example: GraphExample, names: GraphNames) -> list[str]:
    """What is wrong with an example, with the values found; empty where it can be used."""
    n_nodes = len(example.node_types)
    if n_nodes == 0:
        return ["zero nodes; a graph has one at least"]
    return [*_graph_faults(example, names), *_query_faults(example, names), *_label_faults(example, names)]


def check_example(example: GraphExample, names: GraphNames) -> None:
    """Refuses an example that cannot be used.

    Raises:
        DataError: names the example and every fault.
    """
    faults = example_faults(example, names)
    if faults:
        raise DataError(f"example {example.id}: " + "; ".join(faults), hint="correct the example, or leave it out")


def _graph_faults(example: GraphExample, names: GraphNames) -> Iterator[str]:
    n_nodes = len(example.node_types)
    for node, node_type in enumerate(example.node_types):
        if not 0 <= node_type < len(names.node_types):
            yield f"node {node} has type {node_type} of {len(names.node_types)}"
    for number, (source, relation, destination) in enumerate(example.edges):
        for node in (source, destination):
            yield from _node_fault(node, n_nodes, f"edge {number}")
        if not 0 <= relation < len(names.relations):
            yield f"edge {number} has relation {relation} of {len(names.relations)}"


def _query_faults(example: GraphExample, names: GraphNames) -> Iterator[str]:
    n_nodes, query = len(example.node_types), example.query
    if not query.branches and query.mode != Mode.NOTHING:
        yield "the query has no start"
    for branch in query.branches:
        yield from _node_fault(branch.start, n_nodes, "the query starts at")
        for relation in branch.steps:
            if not 0 <= relation < 2 * len(names.relations):
                yield f"the query follows relation {relation} of {len(names.relations)}"
    if query.mode == Mode.RELATION and query.end is None:
        yield "the query has no second node"
    if query.end is not None:
        yield from _node_fault(query.end, n_nodes, "the query ends at")


def _label_faults(example: GraphExample, names: GraphNames) -> Iterator[str]:
    n_nodes, mode = len(example.node_types), example.query.mode
    for node in example.answers:
        yield from _node_fault(node, n_nodes, "an answer is")
    if len(set(example.answers)) < len(example.answers):
        yield "an answer is given twice"
    if example.status == Status.SUPPORTED:
        if mode == Mode.ENTITY and not example.answers:
            yield "supported, and no answer is given"
        if mode in NUMBER_MODES and example.number is None:
            yield "supported, and no number is given"
        if mode == Mode.RELATION and example.target is None:
            yield "supported, and no target is given"
    if example.number is not None and not 0 <= example.number <= _LARGEST:
        yield f"the number {example.number} is not from 0 to {_LARGEST}"
    if example.target is not None and not 0 <= example.target < len(names.targets):
        yield f"target {example.target} of {len(names.targets)}"
    for path in example.paths:
        yield from _path_faults(path, example)


def _path_faults(path: GraphPath, example: GraphExample) -> Iterator[str]:
    if not 0 <= path.branch < len(example.query.branches):
        yield f"a path is for branch {path.branch} of {len(example.query.branches)}"
        return
    here = example.query.branches[path.branch].start
    for edge in path.edges:
        if not 0 <= edge < len(example.edges):
            yield f"a path has edge {edge} of {len(example.edges)}"
            return
        source, _, destination = example.edges[edge]
        if source != here:
            yield f"a path goes from node {here} over edge {edge}, which leaves node {source}"
            return
        here = destination


def _node_fault(node: int, n_nodes: int, where: str) -> Iterator[str]:
    if node < 0:
        yield f"{where} node {node}, a negative index"
    elif node >= n_nodes:
        yield f"{where} node {node} of {n_nodes}"

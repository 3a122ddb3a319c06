"""Generated reasoning examples: a typed graph, a query of several hops, and what the graph says to it.

Three strands (reasoning_strands) of one form lie in each graph: one is whole, one lacks a link, one has a link denied.
The query asks about one of them. In a group of three consecutive examples the strands are the same and change their
parts, so that the query is supported, then short of one edge, then refuted, while graphs as such are alike: neither the
query nor the graph alone tells the status.

A path supports a query when its edges have the relations of the query's steps. One with a denied link in it contradicts
it. A query is supported when some node is reached by supporting paths of all its branches; refuted when one would be
but for denied links; else there is not enough information.

Some groups are doubtful: the link of the whole strand has a relation of doubt in place of its own, of a grade that says
how likely it is the right one. Whether it is has been drawn, so that status, answers and paths of those that ask about
it are uncertain, with a chance that is known (`supported_probability`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from strata_core.corpus.generators import reasoning_vocabulary as vocabulary
from strata_core.corpus.generators.draw import Draw
from strata_core.corpus.generators.reasoning_steps import draw_steps, held_out_before
from strata_core.corpus.generators.reasoning_strands import Form, State, Strand, Way, World, build_strand
from strata_core.corpus.graphs.example import (
    NUMBER_MODES,
    Branch,
    Edge,
    GraphExample,
    GraphPath,
    Mode,
    PathKind,
    Query,
    Status,
)
from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import UsageError

GENERATOR_VERSION = 1
NAMES = GraphNames(relations=vocabulary.RELATION_NAMES, node_types=vocabulary.NODE_TYPES)
SPLITS = ("train", "val", "test", "test-composition", "test-length", "test-size", "test-doubt")
"""Examples to learn from and like those; then each of the others differs in the one thing it is named after."""

GROUP = 3
"""Examples in a group: supported, not enough information, refuted."""

_KINDS = (
    *((Mode.ENTITY, 1),) * 4,
    *((Mode.ENTITY, 2),) * 2,
    *((Mode.COUNT, 1),) * 2,
    (Mode.LARGEST, 1),
    (Mode.SMALLEST, 1),
)
"""Mode and number of branches of consecutive groups."""

BALANCED_BLOCK = GROUP * len(_KINDS)
"""Examples in which each kind of query has its share, with each status equally often."""

_FILLER_NODES = (4, 12)
_FILLER_NODES_IN_LARGE = (60, 120)
_FILLER_EDGES_PER_NODE = 0.6
_ISOLATED_FILLERS = 0.1
_DENIED_FILLERS = 0.15
_DOUBTFUL_FILLERS = 10
_INTERSECTED_HOPS = 2


@dataclass(frozen=True)
class ReasoningSettings:
    """What set of examples is meant.

    Attributes:
        seed: names the set.
        longest_hops: of queries in training, 2 at least; "test-length" has those from one more to twice as many.
        doubtful_share: of groups with a doubtful strand; in "test-doubt" all have one.
        n_examples: for each of SPLITS.
    """

    seed: int = 0
    longest_hops: int = 4
    doubtful_share: float = 0.1
    n_examples: dict[str, int] = field(
        default_factory=lambda: {name: 30_000 if name == "train" else 1_500 for name in SPLITS}
    )

    def check(self) -> None:
        """Refuses what cannot be.

        Raises:
            UsageError: a value out of its range, or a split that does not exist.
        """
        if not 2 <= self.longest_hops <= 8:
            raise UsageError(f"longest_hops is {self.longest_hops}", hint="it is from 2 to 8")
        if not 0 <= self.doubtful_share <= 1:
            raise UsageError(f"doubtful_share is {self.doubtful_share}", hint="it is from 0 to 1")
        for name, count in self.n_examples.items():
            if name not in SPLITS:
                raise UsageError(f"there is no split {name!r}", hint=f"splits are {', '.join(SPLITS)}")
            if count < 1:
                raise UsageError(f"{count} examples in {name}", hint="it is 1 at least; leave out what is not wanted")


def reasoning_examples(settings: ReasoningSettings, split: str) -> Iterator[GraphExample]:
    """The examples of a split in order."""
    for index in range(settings.n_examples[split]):
        yield reasoning_example(settings, split, index)


def reasoning_example(settings: ReasoningSettings, split: str, index: int) -> GraphExample:
    """Example number `index` of a split; it does not depend on how many examples there are."""
    group, part = divmod(index, GROUP)
    draw = Draw(settings.seed, f"reasoning {split}", group)
    world = World()
    form = _draw_form(draw, settings, split, group)
    strands = [build_strand(world, form, draw) for _ in range(GROUP)]
    share = 1.0 if split == "test-doubt" else settings.doubtful_share
    grade = draw.one_of(range(len(vocabulary.DOUBT_GRADES))) if draw.chance(share) else None
    _surround(world, draw, split, grade)
    outcome = _draw_outcome(draw, part, grade)
    cuts = [_cut_edge(strand, state, grade) for strand, state in zip(strands, outcome.states, strict=True)]
    return _labelled(
        _Drawn(form, world, strands[0], cuts, outcome),
        Draw(settings.seed, f"reasoning order {split}", index),
        name=f"{split}-{index}",
        twin=index - 1 if part == 1 and grade is None else None,
    )


def _draw_form(draw: Draw, settings: ReasoningSettings, split: str, group: int) -> Form:
    mode, n_branches = _KINDS[group % len(_KINDS)]
    longest = settings.longest_hops if n_branches == 1 else _INTERSECTED_HOPS
    shortest = 2 if mode in NUMBER_MODES or split == "test-composition" else 1
    if split == "test-length":
        shortest, longest = longest + 1, 2 * longest
    end_type = draw.one_of(range(len(vocabulary.NODE_TYPES)))
    held_out = held_out_before(settings.seed)
    is_new = split == "test-composition"
    lengths = [draw.one_of(range(shortest, longest + 1)) for _ in range(n_branches)]
    branches = [draw_steps(draw, length, end_type, held_out, new_composition=is_new) for length in lengths]
    cut_branch = draw.one_of(range(n_branches))
    last_cut = lengths[cut_branch] - (mode in NUMBER_MODES)
    return Form(mode, tuple(branches), cut_branch, draw.one_of(range(last_cut)))


def _surround(world: World, draw: Draw, split: str, grade: int | None) -> None:
    fewest, most = _FILLER_NODES_IN_LARGE if split == "test-size" else _FILLER_NODES
    fillers = _Fillers(world, draw)
    fillers.add_nodes(draw.one_of(range(fewest, most + 1)))
    fillers.add_edges(int(_FILLER_EDGES_PER_NODE * len(world.node_types)))
    if grade is not None:
        fillers.add_doubtful_edges(_DOUBTFUL_FILLERS, grade)


class _Fillers:
    """Nodes and edges of the same domain that make or break no path of a query, put around the strands of a graph."""

    def __init__(self, world: World, draw: Draw) -> None:
        self._world = world
        self._draw = draw
        self._present = set(world.edges)
        domain = world.node_types[0] // vocabulary.TYPES_IN_DOMAIN
        self._types = range(domain * vocabulary.TYPES_IN_DOMAIN, (domain + 1) * vocabulary.TYPES_IN_DOMAIN)
        self._nodes: dict[int, list[int]] = {node_type: [] for node_type in self._types}
        for node, node_type in enumerate(world.node_types):
            self._nodes[node_type].append(node)

    def add_nodes(self, count: int) -> None:
        """New nodes, most of them with an edge leading in, as nodes of strands have one."""
        for _ in range(count):
            node_type = self._draw.one_of(self._types)
            self._nodes[node_type].append(node := self._world.node(node_type))
            relation = self._draw.one_of(vocabulary.relations_into(node_type))
            sources = self._nodes[vocabulary.RELATIONS[relation].source_type]
            if sources and not self._draw.chance(_ISOLATED_FILLERS):
                self._add(self._draw.one_of(sources), relation, node)

    def add_edges(self, count: int) -> None:
        """Up to so many edges between any nodes."""
        for _ in range(count):
            source = self._draw.one_of(range(len(self._world.node_types)))
            relation = self._draw.one_of(vocabulary.relations_out_of(self._world.node_types[source]))
            destinations = self._nodes[vocabulary.RELATIONS[relation].destination_type]
            if destinations:
                self._add(source, relation, self._draw.one_of(destinations))

    def add_doubtful_edges(self, count: int, grade: int) -> None:
        """Up to so many edges of a grade of doubt, from nodes that no branch of a query comes to."""
        for _ in range(count):
            source, destination = self._draw.several_of(range(len(self._world.node_types)), 2)
            if source not in self._world.expected:
                self._add_once((source, vocabulary.doubt(grade), destination))

    def _add(self, source: int, relation: int, destination: int) -> None:
        if relation == self._world.expected.get(source):
            relation = vocabulary.sibling(relation)
        if self._draw.chance(_DENIED_FILLERS):
            relation = vocabulary.denial(relation)
        self._add_once((source, relation, destination))

    def _add_once(self, edge: Edge) -> None:
        if edge not in self._present:
            self._present.add(edge)
            self._world.edges.append(edge)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of each strand, of which the first is asked about; what that makes of the query; how sure that is."""

    states: tuple[State, State, State]
    status: Status
    supported_probability: float


def _draw_outcome(draw: Draw, part: int, grade: int | None) -> _Outcome:
    """The outcome for a part of a group.

    With a doubtful strand that holds with probability p, the query is about it in part 0 (where it holds) and in
    (1 - p) / p of part 1 (where it does not): so it holds in a share p of the examples that ask about it, and the three
    statuses are equally frequent all the same.
    """
    whole = State.WHOLE if grade is None else State.DOUBTFUL
    chance = 1.0 if grade is None else vocabulary.DOUBT_GRADES[grade]
    asks_about_false = draw.chance((1 - chance) / chance)
    if part == 2:
        return _Outcome((State.DENIED, State.BROKEN, whole), Status.REFUTED, 0.0)
    if part == 0:
        return _Outcome((whole, State.BROKEN, State.DENIED), Status.SUPPORTED, chance)
    if asks_about_false:
        return _Outcome((whole, State.BROKEN, State.DENIED), Status.NOT_ENOUGH_INFO, chance)
    return _Outcome((State.BROKEN, whole, State.DENIED), Status.NOT_ENOUGH_INFO, 0.0)


def _cut_edge(strand: Strand, state: State, grade: int | None) -> Edge | None:
    """The edge at the cut of a strand; None where it is missing."""
    source, relation, destination = strand.cut
    if state == State.BROKEN:
        return None
    if state == State.DENIED:
        relation = vocabulary.denial(relation)
    elif state == State.DOUBTFUL:
        assert grade is not None
        relation = vocabulary.doubt(grade)
    return source, relation, destination


@dataclass(frozen=True, slots=True)
class _Drawn:
    """All that was drawn for an example, with nodes numbered as they were made."""

    form: Form
    world: World
    asked: Strand
    cuts: list[Edge | None]
    outcome: _Outcome


def _labelled(drawn: _Drawn, draw: Draw, *, name: str, twin: int | None) -> GraphExample:
    """The example, with nodes, edges and paths in random order."""
    node_types, asked, outcome = drawn.world.node_types, drawn.asked, drawn.outcome
    old_nodes = draw.several_of(range(len(node_types)), len(node_types))
    new_node = {old: new for new, old in enumerate(old_nodes)}
    edges = drawn.world.edges + [edge for edge in drawn.cuts if edge is not None]
    edges = draw.several_of(edges, len(edges))
    number_of_edge = {edge: number for number, edge in enumerate(edges)}
    paths = []
    for way in asked.ways:
        path = _path(way, asked.cut, drawn.cuts[0], outcome.status, number_of_edge)
        if path.edges and path not in paths:
            paths.append(path)
    supported = outcome.status == Status.SUPPORTED
    starts = zip(asked.starts, drawn.form.branches, strict=True)
    return GraphExample(
        id=name,
        node_types=tuple(node_types[old] for old in old_nodes),
        edges=tuple((new_node[source], relation, new_node[destination]) for source, relation, destination in edges),
        query=Query(drawn.form.mode, tuple(Branch(new_node[start], steps) for start, steps in starts)),
        status=outcome.status,
        answers=tuple(sorted(new_node[answer] for answer in asked.answers)) if supported else (),
        number=asked.number if supported else None,
        paths=tuple(draw.several_of(paths, len(paths))),
        supported_probability=outcome.supported_probability,
        twin=twin,
    )


def _path(way: Way, cut: Edge, cut_edge: Edge | None, status: Status, number_of_edge: dict[Edge, int]) -> GraphPath:
    """A path of the asked strand as it is in the graph; it ends where its link is missing."""
    edges = []
    for edge in way.edges:
        present = cut_edge if edge == cut else edge
        if present is None:
            break
        edges.append(number_of_edge[present])
    kind = PathKind.COMPETING
    if way.to_answer and status == Status.SUPPORTED:
        kind = PathKind.SUPPORTING
    elif way.to_answer and status == Status.REFUTED and cut in way.edges:
        kind = PathKind.CONTRADICTING
    return GraphPath(kind, way.branch, tuple(edges))

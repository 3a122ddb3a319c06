"""Strands: what the query asks about, several times over in one graph, with only one strand whole.

A strand has a start for each branch of the query and all that its steps lead to. One link of it, the cut, is set apart:
by what becomes of that link the strand is whole, broken, denied or doubtful. Around it stand competing paths that share
its nodes and prefixes: a mirror that differs in one relation and has a fan of the opposite size, so that sizes tell
nothing; a bypass that rejoins the strand; dead ends; links that are denied and lead nowhere.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from strata_core.corpus.generators import reasoning_vocabulary as vocabulary
from strata_core.corpus.generators.draw import Draw
from strata_core.corpus.graphs.example import NUMBER_MODES, Edge, Mode

MOST_ENTITIES = 3
"""Answers of a query for entities."""


class State(enum.Enum):
    """What became of the cut of a strand."""

    WHOLE = enum.auto()
    BROKEN = enum.auto()
    DENIED = enum.auto()
    DOUBTFUL = enum.auto()


@dataclass(frozen=True, slots=True)
class Form:
    """What a query asks, apart from where it starts, and where the strands that it could ask about have their cuts.

    Attributes:
        mode: what it asks for.
        branches: the relations of each branch.
        cut_branch: the branch with the cut.
        cut_at: the step there. All strands of a graph have it at the same place, so that a link that moves from one to
            another leaves the numbers of edges of each relation as they are.
    """

    mode: Mode
    branches: tuple[tuple[int, ...], ...]
    cut_branch: int
    cut_at: int


@dataclass
class World:
    """Nodes and edges of a graph in the making.

    Attributes:
        node_types: of each node.
        edges: all but the cuts.
        expected: for a node that a branch may be at, the relation that would lead on; no other edge may have it.
    """

    node_types: list[int] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    expected: dict[int, int] = field(default_factory=dict)

    def node(self, node_type: int) -> int:
        """A new node."""
        self.node_types.append(node_type)
        return len(self.node_types) - 1

    def edge(self, source: int, relation: int, destination: int) -> Edge:
        """A new edge."""
        self.edges.append((source, relation, destination))
        return self.edges[-1]

    def end_of(self, relation: int) -> int:
        """A new node for edges of a relation to lead to."""
        return self.node(vocabulary.RELATIONS[relation].destination_type)


@dataclass(frozen=True, slots=True)
class Way:
    """Edges from the start of a branch. `to_answer`: it leads to what would be an answer if the strand were whole."""

    branch: int
    edges: tuple[Edge, ...]
    to_answer: bool


@dataclass
class Strand:
    """One strand.

    Attributes:
        starts: a node for each branch.
        cut: the edge that is set apart, as it would be in a whole strand.
        answers: what a whole strand leads to.
        number: what a query for a number would get; None for other queries.
        ways: the paths to tell apart.
    """

    starts: list[int] = field(default_factory=list)
    cut: Edge = (0, 0, 0)
    answers: list[int] = field(default_factory=list)
    number: int | None = None
    ways: list[Way] = field(default_factory=list)


def build_strand(world: World, form: Form, draw: Draw) -> Strand:
    """Adds a strand to a graph."""
    strand = Strand()
    if len(form.branches) > 1:
        _build_intersection(world, form, draw, strand)
    else:
        _build_single(world, form, draw, strand)
    return strand


def _build_single(world: World, form: Form, draw: Draw, strand: Strand) -> None:
    steps = form.branches[0]
    asks_number = form.mode in NUMBER_MODES
    before = form.cut_at + 1
    may_fan = before < len(steps)
    most = (vocabulary.LARGEST_NUMBER if asks_number else MOST_ENTITIES) if may_fan else 1
    fan = _Fan(draw.one_of(range(before, len(steps))) if may_fan else 0, draw.one_of(range(1, most + 1)))
    limb = _Limb(world, draw, strand, 0, steps)
    limb.grow_trunk(before, form.cut_at)
    reached = limb.grow_fan(limb.nodes[-1], tuple(limb.edges), fan, expecting=True)
    strand.answers = [node for node, _ in reached]
    strand.ways += [Way(0, edges, True) for _, edges in reached]
    mirror_ends = limb.add_mirror(before, _Fan(fan.place, most + 1 - fan.size))
    limb.add_small_decoys(before)
    if form.mode == Mode.COUNT:
        strand.number = fan.size
    elif asks_number:
        strand.number = _give_levels(world, strand.answers, form.mode, draw)
        _give_levels(world, mirror_ends, form.mode, draw)


def _build_intersection(world: World, form: Form, draw: Draw, strand: Strand) -> None:
    """Branches that meet in the answers; each also leads to a node that the others do not lead to."""
    cut_is_last = form.cut_at + 1 == len(form.branches[form.cut_branch])
    end_type = vocabulary.RELATIONS[form.branches[0][-1]].destination_type
    strand.answers = [world.node(end_type) for _ in range(1 if cut_is_last else draw.one_of((1, 2)))]
    for branch, steps in enumerate(form.branches):
        cut_at = form.cut_at if branch == form.cut_branch else None
        limb = _Limb(world, draw, strand, branch, steps)
        limb.grow_trunk(len(steps) - 1, cut_at)
        strand.ways += [
            Way(branch, (*limb.edges, limb.add_link(len(steps) - 1, answer, cut_at)), True) for answer in strand.answers
        ]
        other = world.edge(limb.nodes[-1], steps[-1], world.node(end_type))
        strand.ways.append(Way(branch, (*limb.edges, other), False))
        before = len(steps) if cut_at is None else cut_at + 1
        limb.add_mirror(before, _Fan(0, 1))
        limb.add_small_decoys(before)


@dataclass(frozen=True, slots=True)
class _Fan:
    """At step `place` of a branch there are `size` edges in place of one."""

    place: int
    size: int


class _Limb:
    """What belongs to one branch of a strand.

    Attributes:
        nodes: of the trunk, from the start on.
        edges: between them, the cut among them.
    """

    def __init__(self, world: World, draw: Draw, strand: Strand, branch: int, steps: tuple[int, ...]) -> None:
        self.nodes = [world.node(vocabulary.RELATIONS[steps[0]].source_type)]
        self.edges: list[Edge] = []
        self._world = world
        self._draw = draw
        self._strand = strand
        self._branch = branch
        self._steps = steps
        strand.starts.append(self.nodes[0])

    def grow_trunk(self, length: int, cut_at: int | None) -> None:
        """One node after another, over the first `length` steps."""
        for place in range(length):
            there = self._world.end_of(self._steps[place])
            self.edges.append(self.add_link(place, there, cut_at))
            self.nodes.append(there)

    def add_link(self, place: int, there: int, cut_at: int | None) -> Edge:
        """The edge of one step from the trunk's end; at the cut it is set apart."""
        here, step = self.nodes[-1], self._steps[place]
        self._world.expected[here] = step
        if place == cut_at:
            self._strand.cut = (here, step, there)
            return self._strand.cut
        return self._world.edge(here, step, there)

    def grow_fan(
        self, node: int, edges: tuple[Edge, ...], fan: _Fan, *, expecting: bool
    ) -> list[tuple[int, tuple[Edge, ...]]]:
        """Goes on from a node that `edges` lead to through the rest of the steps: nodes reached, and edges to each."""
        tips = [(node, edges)]
        for place in range(len(edges), len(self._steps)):
            step = self._steps[place]
            grown = []
            for here, way in tips:
                if expecting:
                    self._world.expected[here] = step
                for _ in range(fan.size if place == fan.place else 1):
                    there = self._world.end_of(step)
                    grown.append((there, (*way, self._world.edge(here, step, there))))
            tips = grown
        return tips

    def add_mirror(self, before: int, fan: _Fan) -> list[int]:
        """A path that leaves the trunk over the wrong relation and is right from there on; the nodes it leads to."""
        place = self._draw.one_of(range(before))
        wrong = vocabulary.sibling(self._steps[place])
        there = self._world.end_of(wrong)
        edges = (*self.edges[:place], self._world.edge(self.nodes[place], wrong, there))
        tips = self.grow_fan(there, edges, fan, expecting=False)
        self._strand.ways += [Way(self._branch, way, False) for _, way in tips]
        return [node for node, _ in tips]

    def add_small_decoys(self, before: int) -> None:
        """Some of: a bypass, a dead end, a denied link; each leaves the trunk at one of its first nodes."""
        for add in (self._add_bypass, self._add_dead_end, self._add_denied_end):
            if self._draw.chance(0.4):
                way = add(self._draw.one_of(range(before)))
                if way:
                    self._strand.ways.append(Way(self._branch, way, False))

    def _add_bypass(self, place: int) -> tuple[Edge, ...]:
        """A wrong relation to the next node of the trunk but one, or where that is not of the trunk, to the next."""
        main = next(way.edges for way in self._strand.ways if way.branch == self._branch and way.to_answer)
        here, wrong = self.nodes[place], vocabulary.sibling(self._steps[place])
        if place + 2 < len(self.nodes):
            between = self._world.end_of(wrong)
            first = self._world.edge(here, wrong, between)
            second = self._world.edge(between, self._steps[place + 1], self.nodes[place + 2])
            return (*main[:place], first, second, *main[place + 2 :])
        if place + 1 < len(self.nodes):
            return (*main[:place], self._world.edge(here, wrong, self.nodes[place + 1]), *main[place + 1 :])
        return ()

    def _add_dead_end(self, place: int) -> tuple[Edge, ...]:
        """The right relation to a node from which nothing leads on."""
        return self._add_end(place, self._steps[place])

    def _add_denied_end(self, place: int) -> tuple[Edge, ...]:
        """The denial of the right relation to a node from which nothing leads on."""
        return self._add_end(place, vocabulary.denial(self._steps[place]))

    def _add_end(self, place: int, relation: int) -> tuple[Edge, ...]:
        if place + 1 == len(self._steps):
            return ()
        there = self._world.end_of(self._steps[place])
        self._world.expected[there] = self._steps[place + 1]
        return (*self.edges[:place], self._world.edge(self.nodes[place], relation, there))


def _give_levels(world: World, nodes: Sequence[int], mode: Mode, draw: Draw) -> int:
    """Gives each node a level so that the asked extreme of them is as likely to be one number as another."""
    extreme = draw.one_of(range(1, vocabulary.LARGEST_NUMBER + 1))
    others = range(1, extreme + 1) if mode == Mode.LARGEST else range(extreme, vocabulary.LARGEST_NUMBER + 1)
    holder = draw.one_of(nodes)
    for node in nodes:
        world.edge(node, vocabulary.level(extreme if node == holder else draw.one_of(others)), node)
    return extreme

"""Small graphs, and slow, obvious ways to answer queries over them, for the tests of this room."""

from __future__ import annotations

from strata_core.corpus.graphs.example import Branch, GraphExample, GraphPath, Mode, PathKind, Query, Status
from strata_core.corpus.graphs.names import GraphNames

KIN = GraphNames(relations=("parent", "sibling", "friend"), node_types=("person", "pet"), targets=("aunt", "uncle"))


def grandchild(identifier: str = "grandchild", **changes) -> GraphExample:
    """0 is a parent of 1, 1 of 2; 3 is nobody's."""
    values = {
        "id": identifier,
        "node_types": (0, 0, 0, 1),
        "edges": ((0, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 2)),
        "query": Query(Mode.ENTITY, (Branch(0, (0, 0)),)),
        "status": Status.SUPPORTED,
        "answers": (2,),
        "paths": (GraphPath(PathKind.SUPPORTING, 0, (0, 1)), GraphPath(PathKind.COMPETING, 0, (2, 1))),
        "supported_probability": 1.0,
    }
    return GraphExample(**(values | changes))


def matching_walks(edges, start: int, steps, *, denied_of=lambda relation: (), doubtful=()) -> list[tuple[int, ...]]:
    """All walks, as numbers of edges, over edges of the relations of the steps, their denials, or doubtful ones."""
    walks: list[tuple[int, tuple[int, ...]]] = [(start, ())]
    for step in steps:
        accepted = {step, *denied_of(step), *doubtful}
        walks = [
            (destination, (*walk, number))
            for here, walk in walks
            for number, (source, relation, destination) in enumerate(edges)
            if source == here and relation in accepted
        ]
    return [walk for _, walk in walks]

"""What makes an example unusable."""

from __future__ import annotations

import pytest

from strata_core.corpus.graphs.example import (
    Branch,
    GraphPath,
    Mode,
    PathKind,
    Query,
    Status,
    check_example,
    example_faults,
)
from strata_core.errors import DataError
from tests.strata_core.corpus.graphs.helpers import KIN, grandchild

UNUSABLE = {
    "zero nodes": ({"node_types": ()}, "zero nodes"),
    "node out of range": ({"edges": ((0, 0, 4),), "paths": ()}, "edge 0 node 4 of 4"),
    "negative node": ({"edges": ((0, 0, -1),), "paths": ()}, "edge 0 node -1, a negative index"),
    "unknown relation": ({"edges": ((0, 3, 1),), "paths": ()}, "edge 0 has relation 3 of 3"),
    "unknown type": ({"node_types": (0, 0, 0, 2)}, "node 3 has type 2 of 2"),
    "absent entity": ({"query": Query(Mode.ENTITY, (Branch(9, (0,)),)), "paths": ()}, "the query starts at node 9"),
    "unknown step": ({"query": Query(Mode.ENTITY, (Branch(0, (6,)),)), "paths": ()}, "follows relation 6 of 3"),
    "no start": ({"query": Query(Mode.ENTITY), "paths": ()}, "the query has no start"),
    "no second node": ({"query": Query(Mode.RELATION, (Branch(0),)), "target": 0}, "the query has no second node"),
    "no answer": ({"answers": ()}, "supported, and no answer is given"),
    "answer out of range": ({"answers": (2, 4)}, "an answer is node 4 of 4"),
    "answer twice": ({"answers": (2, 2)}, "an answer is given twice"),
    "no number": ({"query": Query(Mode.COUNT, (Branch(0, (0, 0)),))}, "supported, and no number is given"),
    "negative number": ({"number": -3}, "the number -3"),
    "no target": ({"query": Query(Mode.RELATION, (Branch(0),), 2)}, "supported, and no target is given"),
    "unknown target": ({"target": 2}, "target 2 of 2"),
    "path of another branch": ({"paths": (GraphPath(PathKind.COMPETING, 1, (0,)),)}, "a path is for branch 1 of 1"),
    "path over no edge": ({"paths": (GraphPath(PathKind.COMPETING, 0, (4,)),)}, "a path has edge 4 of 4"),
    "path that jumps": ({"paths": (GraphPath(PathKind.COMPETING, 0, (0, 3)),)}, "from node 1 over edge 3"),
}


def test_an_example_with_self_loops_parallel_edges_and_an_isolated_node_is_right() -> None:
    assert example_faults(grandchild(), KIN) == []


def test_a_graph_without_edges_is_right_where_nothing_is_said_to_be_supported() -> None:
    assert example_faults(grandchild(edges=(), paths=(), answers=(), status=Status.NOT_ENOUGH_INFO), KIN) == []


@pytest.mark.parametrize("changes, message", UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_used_is_refused_by_id(changes, message) -> None:
    with pytest.raises(DataError, match="example grandchild: ") as refused:
        check_example(grandchild(**changes), KIN)
    assert message in refused.value.message


def test_all_faults_of_an_example_are_named_at_once() -> None:
    assert len(example_faults(grandchild(edges=((0, 0, 4), (-1, 7, 0)), paths=()), KIN)) == 3

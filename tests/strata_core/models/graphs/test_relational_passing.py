"""The walk of a query over typed edges: against a walk node by node, and what it promises."""

import pytest
import torch

from strata_core.errors import RecipeError
from strata_core.models import initialise
from strata_core.models.graphs.relational_passing import Graphs, PassingConfig, RelationalPassing, with_inverses

torch.set_num_threads(1)


def passing_of(**changes):
    config = PassingConfig(**({"n_relations": 5, "d_model": 8, "d_query": 6, "rank": 4, "n_heads": 2} | changes))
    passing = RelationalPassing(config)
    initialise(passing, 1)
    with torch.no_grad():
        passing.update.outer.weight.normal_(0, 0.2)
    return passing.double().eval()


def walk(passing, boundary, graphs, steps, lengths):
    return passing.states_by_step(boundary, graphs, passing.weights.map_query(steps), lengths)[-1]


def shortened(state):
    size = state.square().mean().sqrt()
    return state / size if size > 1 else state


def walk_by_hand(passing, boundary, edges, steps, length):
    """One query in one graph, an edge at a time."""
    weights = passing.weights
    states = boundary.clone()
    for step in range(length):
        sums = [torch.zeros_like(row) for row in boundary]
        for source, relation, destination in edges:
            alone = 1.0 if passing.config.relation_part else 0.0
            met = (alone + weights.query_map.weight @ steps[step]) * weights.relations.weight[relation]
            factor = weights.out.weight @ met
            if passing.config.message == "gate":
                factor = torch.sigmoid(factor + weights.out.bias).repeat_interleave(8 // passing.config.n_heads)
            sums[destination] = sums[destination] + states[source] * factor
        update = passing.update
        states = torch.stack([shortened(s + update.outer.weight @ torch.relu(update.inner.weight @ s)) for s in sums])
    return states


@pytest.mark.parametrize("relation_part", [False, True])
@pytest.mark.parametrize("message", ["gate", "distmult"])
def test_a_batch_of_graphs_is_walked_as_each_alone(message, relation_part):
    torch.manual_seed(0)
    passing = passing_of(message=message, relation_part=relation_part)
    first = [(0, 1, 1), (1, 2, 2), (1, 2, 2), (2, 0, 2), (0, 3, 2)]
    second = [(0, 4, 1), (1, 1, 0)]
    # Two queries in each of two graphs: each query has a copy of its graph.
    copies, sizes, rows = [first, first, second, second], [3, 3, 2, 2], [0, 3, 6, 8]
    edges = torch.tensor([(s + row, r, d + row) for row, own in zip(rows, copies, strict=True) for s, r, d in own])
    owners = torch.tensor([graph for graph, own in enumerate(copies) for _ in own])
    graphs = Graphs(edges, owners, torch.repeat_interleave(torch.arange(4), torch.tensor(sizes)))
    boundary = torch.zeros(10, 8, dtype=torch.float64)
    boundary[[0, 4, 6, 9]] = torch.randn(4, 8, dtype=torch.float64)
    steps = torch.randn(3, 4, 6, dtype=torch.float64)
    lengths = torch.tensor([3, 1, 0, 2])
    with torch.no_grad():
        states = walk(passing, boundary, graphs, steps, lengths)
        for graph, (row, size) in enumerate(zip(rows, sizes, strict=True)):
            own = slice(row, row + size)
            alone = walk_by_hand(passing, boundary[own], copies[graph], steps[:, graph], lengths[graph])
            torch.testing.assert_close(states[own], alone)


def test_one_graph_alone_is_walked_as_one_of_two():
    passing = passing_of()
    edges = torch.tensor([[0, 1, 1], [1, 0, 2], [2, 3, 0]])
    boundary, steps = torch.zeros(3, 8, dtype=torch.float64), torch.randn(2, 1, 6, dtype=torch.float64)
    boundary[0] = 1.0
    one = Graphs(edges, edges[:, 0] * 0, torch.zeros(3, dtype=torch.long))
    owners = torch.tensor([0, 0, 0, 1, 1, 1])
    two = Graphs(torch.cat([edges, edges + torch.tensor([3, 0, 3])]), owners, owners)
    alone = walk(passing, boundary, one, steps, torch.tensor([2]))
    both = walk(passing, torch.cat([boundary, boundary]), two, steps.expand(2, 2, 6), torch.tensor([2, 2]))
    torch.testing.assert_close(both, torch.cat([alone, alone]))


def test_what_no_message_reaches_is_zero_and_a_longer_batch_changes_no_shorter_query():
    passing = passing_of()
    edges = torch.tensor([[0, 1, 1], [2, 1, 3]])
    graphs = Graphs(edges, torch.tensor([0, 0]), torch.zeros(4, dtype=torch.long))
    boundary = torch.zeros(4, 8, dtype=torch.float64)
    boundary[0] = 1.0
    steps = torch.randn(6, 1, 6, dtype=torch.float64)
    short = walk(passing, boundary, graphs, steps[:1], torch.tensor([1]))
    assert torch.equal(short, walk(passing, boundary, graphs, steps, torch.tensor([1])))
    assert short[1].any() and not short[[0, 2, 3]].any()


def test_a_weak_message_is_as_weak_after_many_steps():
    update = passing_of().update
    states = torch.full((1, 8), 1e-3, dtype=torch.float64)
    with torch.no_grad():
        update.outer.weight.zero_()
        for _ in range(20):
            states = update(states)
    assert states.square().mean().sqrt().item() == pytest.approx(1e-3, rel=1e-3)


def test_inverse_edges_stand_behind_the_others_as_further_relations():
    edges = torch.tensor([[0, 1, 2], [2, 0, 1]])
    both = with_inverses(Graphs(edges, torch.tensor([0, 0]), torch.zeros(3, dtype=torch.long)), 5)
    assert both.edges_E3.tolist() == [[0, 1, 2], [2, 0, 1], [2, 6, 0], [1, 5, 2]]
    assert both.edge_graphs_E.tolist() == [0] * 4


def test_settings_that_cannot_be_are_refused():
    for changes, message in (
        ({"message": "loud"}, "model.message is 'loud'"),
        ({"n_heads": 3}, "does not divide"),
    ):
        with pytest.raises(RecipeError, match=message):
            PassingConfig(5, d_model=8, **changes)


def test_heads_matter_to_gates_alone():
    assert PassingConfig(5, d_model=8, message="distmult", n_heads=3).n_heads == 3
    passing = passing_of(message="distmult", n_heads=3)
    assert passing.weights.out.out_features == 8

"""The walk of a query over typed edges: against a walk node by node, and what it promises."""

import pytest
import torch

from strata_core.errors import RecipeError
from strata_core.models import initialise
from strata_core.models.relational_passing import Graphs, PassingConfig, RelationalPassing, with_inverses

torch.set_num_threads(1)


def passing_of(**changes):
    keep = changes.pop("keep_boundary", False)
    config = PassingConfig(**({"n_relations": 5, "d_model": 8, "d_query": 6, "rank": 4, "n_heads": 2} | changes))
    passing = RelationalPassing(config, keep_boundary=keep)
    initialise(passing, 1)
    with torch.no_grad():
        passing.update.outer.weight.normal_(0, 0.2)
    return passing.double().eval()


def norm(state, kind):
    size = state.square().mean().sqrt()
    if kind == "rms":
        return state / torch.sqrt(size**2 + 1e-6)
    return state / size if size > 1 else state


def walk_by_hand(passing, boundary, edges, steps, length):
    """One query in one graph, an edge at a time."""
    weights, kind = passing.weights, passing.config.normalisation
    states = boundary.clone()
    for step in range(length):
        sums = [row.clone() if passing.keep_boundary else torch.zeros_like(row) for row in boundary]
        for source, relation, destination in edges:
            alone = 1.0 if passing.config.relation_part else 0.0
            met = (alone + weights.query_map.weight @ steps[step]) * weights.relations.weight[relation]
            factor = weights.out.weight @ met
            if passing.config.message == "gate":
                factor = torch.sigmoid(factor + weights.out.bias).repeat_interleave(8 // passing.config.n_heads)
            sums[destination] = sums[destination] + states[source] * factor
        update = passing.update
        states = torch.stack(
            [norm(s + update.outer.weight @ torch.relu(update.inner.weight @ s), kind) for s in sums]
        )
    return states


@pytest.mark.parametrize("relation_part", [False, True])
@pytest.mark.parametrize("message", ["gate", "distmult"])
@pytest.mark.parametrize("normalisation", ["limit", "rms"])
@pytest.mark.parametrize("keep_boundary", [False, True])
def test_a_batch_of_graphs_and_queries_is_walked_as_each_alone(
    message, normalisation, keep_boundary, relation_part
):
    torch.manual_seed(0)
    passing = passing_of(
        message=message, normalisation=normalisation, keep_boundary=keep_boundary, relation_part=relation_part
    )
    first = [(0, 1, 1), (1, 2, 2), (1, 2, 2), (2, 0, 2), (0, 3, 2)]
    second = [(0, 4, 1), (1, 1, 0)]
    edges = torch.tensor(first + [(s + 3, r, d + 3) for s, r, d in second])
    graphs = Graphs(edges, torch.tensor([0] * 5 + [1] * 2), torch.tensor([0, 0, 0, 1, 1]))
    boundary = torch.zeros(5, 2, 8, dtype=torch.float64)
    boundary[0, 0], boundary[1, 1], boundary[3, 0], boundary[4, 1] = torch.randn(4, 8, dtype=torch.float64)
    steps = torch.randn(3, 2, 2, 6, dtype=torch.float64)
    lengths = torch.tensor([[3, 1], [0, 2]])
    with torch.no_grad():
        states = passing(boundary, graphs, steps, lengths)
        for graph, (rows, own) in enumerate([(slice(0, 3), first), (slice(3, 5), second)]):
            for query in range(2):
                alone = walk_by_hand(passing, boundary[rows, query], own, steps[:, graph, query], lengths[graph, query])
                torch.testing.assert_close(states[rows, query], alone)


def test_one_graph_alone_is_walked_as_one_of_two():
    passing = passing_of()
    edges = torch.tensor([[0, 1, 1], [1, 0, 2], [2, 3, 0]])
    boundary, steps = torch.zeros(3, 1, 8, dtype=torch.float64), torch.randn(2, 1, 1, 6, dtype=torch.float64)
    boundary[0] = 1.0
    alone = passing(boundary, Graphs(edges, edges[:, 0] * 0, torch.zeros(3, dtype=torch.long)), steps, steps.new_full(
        (1, 1), 2
    ))
    both = passing(
        torch.cat([boundary, boundary]),
        Graphs(torch.cat([edges, edges + torch.tensor([3, 0, 3])]), torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor(
            [0, 0, 0, 1, 1, 1]
        )),
        steps.expand(2, 2, 1, 6),
        torch.full((2, 1), 2),
    )
    torch.testing.assert_close(both, torch.cat([alone, alone]))


def test_what_no_message_reaches_is_zero_and_a_longer_batch_changes_no_shorter_query():
    passing = passing_of()
    edges = torch.tensor([[0, 1, 1], [2, 1, 3]])
    graphs = Graphs(edges, torch.tensor([0, 0]), torch.zeros(4, dtype=torch.long))
    boundary = torch.zeros(4, 1, 8, dtype=torch.float64)
    boundary[0] = 1.0
    steps = torch.randn(6, 1, 1, 6, dtype=torch.float64)
    short = passing(boundary, graphs, steps[:1], torch.tensor([[1]]))
    assert torch.equal(short, passing(boundary, graphs, steps, torch.tensor([[1]])))
    assert short[1].any() and not short[[0, 2, 3]].any()


def test_a_weak_message_is_as_weak_after_many_steps_under_limit_and_grows_under_rms():
    weak = torch.full((1, 1, 8), 1e-3, dtype=torch.float64)
    for normalisation, size in (("limit", 1e-3), ("rms", 1.0)):
        update = passing_of(normalisation=normalisation).update
        with torch.no_grad():
            update.outer.weight.zero_()
            states = weak
            for _ in range(20):
                states = update(states)
        assert states.square().mean().sqrt().item() == pytest.approx(size, rel=1e-3)


def test_inverse_edges_stand_behind_the_others_as_further_relations():
    edges = torch.tensor([[0, 1, 2], [2, 0, 1]])
    both = with_inverses(Graphs(edges, torch.tensor([0, 0]), torch.zeros(3, dtype=torch.long)), 5)
    assert both.edges_E3.tolist() == [[0, 1, 2], [2, 0, 1], [2, 6, 0], [1, 5, 2]]
    assert both.edge_graphs_E.tolist() == [0] * 4


def test_settings_that_cannot_be_are_refused():
    for changes, message in (
        ({"message": "loud"}, "model.message is 'loud'"),
        ({"normalisation": "batch"}, "'batch'"),
        ({"n_heads": 3}, "does not divide"),
    ):
        with pytest.raises(RecipeError, match=message):
            PassingConfig(5, d_model=8, **changes)

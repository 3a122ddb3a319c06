"""The graph object: what it reads, from where on, and what each intervention leaves of it."""

import collections
import math

import numpy as np
import pytest
import torch

from strata_core.errors import RecipeError
from strata_core.models import initialise
from strata_core.models.edge_slots import intervene, pack_slots
from strata_core.models.graph_object_memory import GraphObjectMemory, GraphObjectMemoryConfig, visible_slots
from tests.strata_core.models.structured import WIDTH, enlarge, some_states

EDGES = [np.array([[1, 0, 1], [1, 3, 2]]), np.array([[4, 2, 3]]), np.zeros((0, 3), dtype=np.int64)]
SEEDS = [10, 11, 12]
INTERVENTIONS = ("none", "typed", "untyped", "random")


def make(dtype: torch.dtype = torch.float64) -> GraphObjectMemory:
    memory = GraphObjectMemory(WIDTH, GraphObjectMemoryConfig(n_types=3, n_heads=2), 1e-5)
    initialise(memory, 1)
    enlarge(memory)
    return memory.to(dtype)


def causal(length: int) -> torch.Tensor:
    return torch.ones(1, length, length, dtype=torch.bool).tril()


def slow_addition(memory: GraphObjectMemory, states, edges, visible):
    """One row, [L, D]: each position over the edges of which it sees both ends."""
    normal = states / (states.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * memory.norm.weight
    contents = [
        memory.source(normal[source]) + memory.target(normal[target]) + memory.edge_type.weight[edge_type]
        for source, target, edge_type in edges.tolist()
    ]
    added = []
    for here in range(len(states)):
        seen = [
            content
            for content, (source, target, _) in zip(contents, edges.tolist(), strict=True)
            if visible[here, source] and visible[here, target]
        ]
        read = []
        for head in range(2):
            part = slice(head * WIDTH // 2, (head + 1) * WIDTH // 2)
            query = memory.query(normal[here])[part]
            shares = [(query @ memory.key(slot)[part] / math.sqrt(WIDTH // 2)).exp() for slot in seen]
            values = [memory.value(slot)[part] for slot in seen]
            nothing = torch.zeros(WIDTH // 2, dtype=states.dtype)
            weighted = sum((s * v for s, v in zip(shares, values, strict=True)), nothing)
            read.append(weighted / (1 + sum(shares)))
        added.append(math.tanh(memory.gate.item()) * memory.output(torch.cat(read)))
    return torch.stack(added)


@pytest.mark.parametrize("full", [False, True])
def test_the_memory_equals_one_that_walks_over_its_slots(full):
    memory, states = make(), some_states(3, 5, WIDTH)
    visible = torch.ones(1, 5, 5, dtype=torch.bool) if full else causal(5)
    added, _ = memory(states, visible, pack_slots(EDGES, "typed", SEEDS))
    for row, edges in enumerate(EDGES):
        torch.testing.assert_close(added[row], slow_addition(memory, states[row], edges, visible[0]))
    assert torch.equal(added[2], torch.zeros_like(added[2]))


def test_a_slot_is_visible_from_its_later_endpoint_on_and_inside_its_document():
    slots = pack_slots([np.array([[1, 3, 1], [4, 2, 1], [0, 0, 1]])], "typed", [0])
    first_seen = visible_slots(causal(6), slots)[0].int().argmax(dim=0)
    assert first_seen.tolist() == [3, 4, 0]
    assert visible_slots(causal(6), slots)[0, -1].all()
    visible = causal(6)
    visible[:, 5, :4] = False
    assert visible_slots(visible, slots)[0, 5].tolist() == [False, False, False]


def test_a_changed_slot_changes_nothing_before_its_later_endpoint_by_a_bit():
    memory, states = make(torch.float32), some_states(1, 7, WIDTH, dtype=torch.float32)
    edges = np.array([[0, 1, 1], [2, 4, 1]])
    plain = memory(states, causal(7), pack_slots([edges], "typed", [0]))[0]
    for changed_edge in ([2, 4, 2], [0, 4, 1], [2, 6, 1]):
        changed = memory(states, causal(7), pack_slots([np.array([[0, 1, 1], changed_edge])], "typed", [0]))[0]
        assert torch.equal(changed[:, :4], plain[:, :4])
        assert not torch.equal(changed[:, 4:], plain[:, 4:])


def test_interventions_agree_in_shapes_and_none_reads_exactly_nothing():
    memory, states = make(), some_states(3, 5, WIDTH)
    packed = {name: pack_slots(EDGES, name, SEEDS) for name in INTERVENTIONS}
    shapes = {name: {field: tensor.shape for field, tensor in vars(slots).items()} for name, slots in packed.items()}
    assert all(shape == shapes["typed"] for shape in shapes.values())
    added = {name: memory(states, causal(5), slots)[0] for name, slots in packed.items()}
    assert torch.equal(added["none"], torch.zeros_like(added["none"]))
    assert not torch.equal(added["typed"], added["untyped"])


def test_untyped_edges_share_one_type_and_keep_their_ends():
    edges = np.array([[1, 0, 1], [1, 3, 2]])
    assert intervene(edges, "untyped", 1).tolist() == [[1, 0, 0], [1, 3, 0]]
    assert intervene(edges, "typed", 1).tolist() == edges.tolist()
    assert edges[:, 2].tolist() == [1, 2]


def test_random_edges_keep_degrees_and_type_counts_and_follow_their_seed():
    generator = np.random.default_rng(5)
    edges = np.stack([generator.integers(0, 8, 30), generator.integers(0, 8, 30), generator.integers(1, 5, 30)], axis=1)
    rewired = intervene(edges, "random", 7)
    for column in range(3):
        assert collections.Counter(rewired[:, column]) == collections.Counter(edges[:, column])
    assert (rewired[:, 1] != edges[:, 1]).any() and (rewired[:, 2] != edges[:, 2]).any()
    assert np.array_equal(rewired, intervene(edges, "random", 7))
    assert not np.array_equal(rewired, intervene(edges, "random", 8))


def test_random_edges_tell_nothing_on_average():
    """Four edges of two predicates: the true target of a typed edge comes up as often as each other one."""
    edges = np.array([[0, 1, 1], [0, 2, 2], [5, 6, 1], [5, 7, 2]])
    draws = [intervene(edges, "random", seed) for seed in range(4000)]
    targets = collections.Counter(
        target for draw in draws for source, target, edge_type in draw.tolist() if (source, edge_type) == (0, 1)
    )
    total = sum(targets.values())
    # Four standard errors of a share of 1/4.
    assert all(abs(count / total - 0.25) < 4 * math.sqrt(0.25 * 0.75 / total) for count in targets.values())


def test_a_role_edit_shows_in_typed_slots_alone_and_not_in_untyped_ones():
    memory, states = make(), some_states(1, 5, WIDTH)
    original, edited = np.array([[1, 0, 1], [1, 3, 2]]), np.array([[1, 0, 2], [1, 3, 1]])
    moved = {}
    for name in ("typed", "untyped"):
        first, second = (memory(states, causal(5), pack_slots([e], name, [3]))[0] for e in (original, edited))
        moved[name] = not torch.equal(first, second)
    assert moved == {"typed": True, "untyped": False}


def test_slot_type_scores_know_the_endpoints_but_not_the_type():
    memory, states = make(), some_states(3, 5, WIDTH)
    scores = [memory(states, causal(5), pack_slots(EDGES, name, SEEDS))[1] for name in ("typed", "untyped")]
    assert scores[0].shape == (3, 2, 4)
    assert torch.equal(*scores)


def test_the_memory_adds_nothing_at_first_but_its_gate_learns():
    memory = GraphObjectMemory(WIDTH, GraphObjectMemoryConfig(n_types=3), 1e-5)
    initialise(memory, 1)
    states = some_states(3, 5, WIDTH, dtype=torch.float32)
    added, _ = memory(states, causal(5), pack_slots(EDGES, "typed", SEEDS))
    assert torch.equal(added, torch.zeros_like(added))
    added.sum().backward()
    assert memory.gate.grad.abs().item() > 0


def test_a_batch_without_edges_reads_nothing():
    memory, states = make(), some_states(1, 5, WIDTH)
    added, scores = memory(states, causal(5), pack_slots([np.zeros((0, 3), dtype=np.int64)], "typed", [0]))
    assert torch.equal(added, torch.zeros_like(added))
    assert scores.shape == (1, 0, 4)


def test_heads_that_do_not_divide_are_refused_by_name():
    with pytest.raises(RecipeError, match=r"graph_object_memory.n_heads = 3.*d_model = 16"):
        GraphObjectMemory(WIDTH, GraphObjectMemoryConfig(n_types=3, n_heads=3), 1e-5)

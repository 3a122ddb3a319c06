"""The learned memory against one that walks over edges one by one, and what overrides may touch."""

import math

import pytest
import torch
import torch.nn.functional as F

from strata_core.models import initialise
from strata_core.models.predicate_memory import (
    MEMORY_ROLES,
    PredicateMemory,
    PredicateMemoryConfig,
    RoleCell,
    memory_role,
    override_roles,
)
from tests.strata_core.models.structured import WIDTH, enlarge, some_states

CHANNELS, CHANNEL_WIDTH = len(MEMORY_ROLES) - 1, 4


def make(dtype: torch.dtype = torch.float64) -> PredicateMemory:
    memory = PredicateMemory(WIDTH, PredicateMemoryConfig(channel_width=CHANNEL_WIDTH, role_width=6), 1e-5)
    initialise(memory, 1)
    enlarge(memory, 20.0)
    return memory.to(dtype)


def causal(length: int) -> torch.Tensor:
    return torch.ones(1, length, length, dtype=torch.bool).tril()


def slow_addition(memory: PredicateMemory, states, visible):
    """One row, [L, D]: edges found and read with loops."""
    length = len(states)
    normal = states / (states.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * memory.norm.weight
    one = torch.ones(1, dtype=states.dtype)
    firsts = [torch.cat([F.gelu(memory.predicate_side(x)), one]) for x in normal]
    seconds = [torch.cat([F.gelu(memory.argument_side(x)), one]) for x in normal]

    def edge(predicate, argument):
        scores = torch.stack([firsts[predicate] @ u @ seconds[argument] for u in memory.role.weight])
        return memory.predicate(normal[predicate])[0].sigmoid() * scores.softmax(0)[1:]

    query, key, value = (
        layer(normal).unflatten(-1, (CHANNELS, CHANNEL_WIDTH)) for layer in (memory.query, memory.key, memory.value)
    )
    added = []
    for here in range(length):
        read = []
        for channel in range(CHANNELS):
            nothing = torch.zeros(CHANNEL_WIDTH, dtype=states.dtype)
            total, weighted = 1.0, nothing
            for slot in range(length):
                if not visible[here, slot]:
                    continue
                earlier = [other for other in range(slot + 1) if visible[slot, other]]
                own = [(edge(slot, other)[channel], key[slot, channel], value[other, channel]) for other in earlier]
                others = [
                    (edge(other, slot)[channel], key[other, channel], value[slot, channel])
                    for other in earlier
                    if other != slot
                ]
                for edges in (own, others):
                    mass = sum(weight for weight, _, _ in edges) + 1e-6
                    mean_key = sum((w * k for w, k, _ in edges), nothing) / mass
                    mean_value = sum((w * v for w, _, v in edges), nothing) / mass
                    # A slot has its own place whole, and only the other ends of its edges as their mean.
                    slot_key = key[slot, channel] if edges is own else mean_key
                    slot_value = mean_value if edges is own else value[slot, channel]
                    share = mass * (query[here, channel] @ slot_key / math.sqrt(CHANNEL_WIDTH)).exp()
                    total, weighted = total + share, weighted + share * slot_value
            read.append(weighted / total)
        added.append(math.tanh(memory.gate.item()) * memory.output(torch.cat(read)))
    return torch.stack(added)


@pytest.mark.parametrize("full", [False, True])
def test_the_memory_equals_one_that_walks_over_its_edges(full):
    memory, states = make(), some_states(2, 5, WIDTH)
    visible = torch.ones(1, 5, 5, dtype=torch.bool) if full else causal(5)
    added, _ = memory(states, visible)
    for row in range(2):
        torch.testing.assert_close(added[row], slow_addition(memory, states[row], visible[0]), rtol=1e-6, atol=1e-9)


def test_documents_and_padding_are_invisible():
    memory, states = make(), some_states(1, 6, WIDTH)
    visible = causal(6)
    visible[:, 2:, :2] = False
    visible[:, :, 5] = False
    visible[:, 5, 5] = True
    added, _ = memory(states, visible)
    first, _ = memory(states[:, :2], causal(2))
    second, _ = memory(states[:, 2:5], causal(3))
    torch.testing.assert_close(added[:, :5], torch.cat([first, second], dim=1))
    assert torch.isfinite(added).all()


def test_the_memory_adds_nothing_at_first_but_its_gate_learns():
    memory = PredicateMemory(WIDTH, PredicateMemoryConfig(), 1e-5)
    initialise(memory, 1)
    added, _ = memory(some_states(1, 5, WIDTH, dtype=torch.float32), causal(5))
    assert torch.equal(added, torch.zeros_like(added))
    added.sum().backward()
    assert memory.gate.grad.abs().item() > 0


@pytest.mark.parametrize("place", [1, 4, 6])
def test_a_later_state_changes_nothing_earlier_by_a_bit(place):
    memory, states = make(torch.float32), some_states(2, 7, WIDTH, dtype=torch.float32)
    changed = states.clone()
    changed[:, place] += 1
    before, after = memory(states, causal(7))[0], memory(changed, causal(7))[0]
    assert torch.equal(before[:, :place], after[:, :place])
    assert not torch.equal(before[:, place:], after[:, place:])


@pytest.mark.parametrize("cell", [RoleCell(0, 1, 4, 1), RoleCell(0, 4, 2, 2)])
def test_an_overridden_role_shows_from_the_later_end_of_its_edge_on(cell):
    memory, states = make(torch.float32), some_states(2, 7, WIDTH, dtype=torch.float32)
    override = override_roles([cell], rows=2, length=7, bias_value=4.0, scope="role_only")
    plain, edited = memory(states, causal(7))[0], memory(states, causal(7), override)[0]
    assert torch.equal(plain[1], edited[1])
    assert torch.equal(plain[0, :4], edited[0, :4])
    assert (plain[0, 4:] != edited[0, 4:]).any(dim=-1).all()


def test_an_override_raises_one_core_role_lowers_the_other_and_leaves_the_rest():
    memory, states = make(), some_states(1, 4, WIDTH)
    override = override_roles([RoleCell(0, 2, 1, 2)], rows=1, length=4, bias_value=4.0, scope="role_only")
    plain, edited = memory(states, causal(4))[1], memory(states, causal(4), override)[1]
    difference = edited.role_BKLL - plain.role_BKLL
    assert difference[0, :, 2, 1].tolist() == pytest.approx([0, -4, 4, 0, 0])
    difference[0, :, 2, 1] = 0
    assert torch.equal(difference, torch.zeros_like(difference))


def test_the_override_scope_decides_about_predicate_scores():
    memory, states = make(), some_states(1, 4, WIDTH)
    plain = memory(states, causal(4))[1].predicate_BL
    cells = [RoleCell(0, 2, 1, 2), RoleCell(0, 2, 3, 1)]
    scores = {
        scope: memory(states, causal(4), override_roles(cells, rows=1, length=4, bias_value=4.0, scope=scope))[
            1
        ].predicate_BL
        for scope in ("legacy", "role_only")
    }
    assert torch.equal(scores["role_only"], plain)
    torch.testing.assert_close(scores["legacy"] - plain, torch.tensor([[0.0, 0.0, 4.0, 0.0]], dtype=torch.float64))


def test_a_swap_exchanges_what_two_channels_read():
    """With roles fixed by the bias alone, ARG0 and ARG1 of the one predicate trade places."""
    memory, states = make(), some_states(1, 3, WIDTH)
    with torch.no_grad():
        memory.role.weight.zero_()
    weights = []
    for roles in ((1, 2), (2, 1)):
        cells = [RoleCell(0, 0, 1, roles[0]), RoleCell(0, 0, 2, roles[1])]
        override = override_roles(cells, rows=1, length=3, bias_value=30.0, scope="legacy")
        scores = memory(states, causal(3), override)[1]
        weights.append(scores.role_BKLL.softmax(dim=1)[0, 1:3, 0, 1:])
    torch.testing.assert_close(weights[0], torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(weights[1], torch.eye(2, dtype=torch.float64).flip(0))


def test_autocast_keeps_scores_in_float32_and_everything_finite():
    memory, states = make(torch.float32), some_states(2, 6, WIDTH, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        added, scores = memory(states, causal(6))
    assert scores.role_BKLL.dtype == scores.predicate_BL.dtype == torch.float32
    expected = memory(states, causal(6))[0]
    torch.testing.assert_close(added.float(), expected, rtol=0.1, atol=0.1 * expected.abs().max().item())


def test_roles_are_known_by_name():
    roles = ("ARG0", "ARG1", "ARG2", "ARGM-TMP", "R-ARG0")
    assert [memory_role(role) for role in roles] == [1, 2, 3, 4, 4]

"""The heads against biaffine scores written out pair by pair."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from strata_core.models import initialise
from strata_core.models.biaffine import Biaffine
from strata_core.models.structure_heads import StructureHeads
from tests.strata_core.models.structured import HEADS, WIDTH, enlarge, some_states

REAL = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


@pytest.fixture
def heads() -> StructureHeads:
    module = StructureHeads(WIDTH, HEADS)
    initialise(module, 4)
    enlarge(module)
    return module.double()


def hidden(module, state):
    return F.gelu(module.linear.weight @ state + module.linear.bias)


def score(module: Biaffine, first, second):
    """first' U second + u' first + v' second + b, class by class."""
    weight = module.weight
    return torch.stack(
        [
            first @ weight[c, :-1, :-1] @ second
            + weight[c, :-1, -1] @ first
            + weight[c, -1, :-1] @ second
            + weight[c, -1, -1]
            for c in range(len(weight))
        ]
    )


def test_arc_scores_equal_those_written_out_and_forbid_padding_and_the_word_itself(heads):
    states = some_states(2, 5, WIDTH)
    scores = heads.arcs(states, REAL)
    assert scores.shape == (2, 5, 6)
    for row, word, head in itertools.product(range(2), range(5), range(6)):
        if head == word + 1 or (head > 0 and not REAL[row, head - 1]):
            assert scores[row, word, head] == float("-inf")
            continue
        head_state = heads.arcs.root[0] if head == 0 else states[row, head - 1]
        members = hidden(heads.arcs.dependent, states[row, word]), hidden(heads.arcs.head, head_state)
        torch.testing.assert_close(scores[row, word, head], score(heads.arcs.score, *members)[0])


def test_relation_scores_are_those_of_the_arcs_given(heads):
    states = some_states(2, 5, WIDTH)
    gold = torch.tensor([[2, 0, 2, 5, 3], [0, 1, 1, -1, -1]])
    scores = heads.relations(states, gold)
    assert scores.shape == (2, 5, 5)
    for row, word in itertools.product(range(2), range(5)):
        head = int(gold[row, word])
        if head < 0:
            continue
        head_state = heads.relations.root[0] if head == 0 else states[row, head - 1]
        members = hidden(heads.relations.dependent, states[row, word]), hidden(heads.relations.head, head_state)
        torch.testing.assert_close(scores[row, word], score(heads.relations.score, *members))


def test_role_scores_are_those_of_the_predicates_given_with_every_word(heads):
    states = some_states(2, 5, WIDTH)
    predicates = torch.tensor([[0, 1], [1, 2], [0, 4]])
    scores = heads.roles(states, predicates)
    assert scores.shape == (3, 5, 4)
    for index, (row, predicate) in enumerate(predicates.tolist()):
        for word in range(5):
            members = (
                hidden(heads.roles.predicate, states[row, predicate]),
                hidden(heads.roles.argument, states[row, word]),
            )
            torch.testing.assert_close(scores[index, word], score(heads.roles.score, *members))


def test_a_batch_without_predicates_has_no_role_scores_and_zero_gradients(heads):
    scores = heads.roles(some_states(2, 5, WIDTH), torch.zeros(0, 2, dtype=torch.int64))
    assert scores.shape == (0, 5, 4)
    scores.sum().backward()
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in heads.roles.parameters())


def test_word_classifiers_have_a_score_for_each_class(heads):
    states = some_states(2, 5, WIDTH)
    assert heads.node_types(states).shape == (2, 5, 4)
    assert heads.chart_items(states).shape == (2, 5, 12)
    assert heads.predicates(states).shape == (2, 5, 1)


def test_head_dropout_is_drawn_in_training_and_off_in_evaluation():
    module = StructureHeads(WIDTH, type(HEADS)(**(vars(HEADS) | {"dropout": 0.5}))).double()
    initialise(module, 4)
    enlarge(module)
    states = some_states(1, 4, WIDTH)
    first, second = (module.node_types(states) for _ in range(2))
    assert not torch.equal(first, second)
    module.eval()
    assert torch.equal(module.node_types(states), module.node_types(states))

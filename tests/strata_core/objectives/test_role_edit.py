"""Hinges on odds, worked out by hand."""

import math

import pytest
import torch

from strata_core.objectives.graph_object import null_loss, stability_loss
from strata_core.objectives.next_token import IGNORED, next_token_nats
from strata_core.objectives.role_edit import follow_loss, movement_loss, token_log_probabilities


def odds(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_log_probabilities_are_those_of_the_labels():
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    weight = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    labels = torch.tensor([[5, IGNORED, 0], [2, 2, IGNORED]])
    found = token_log_probabilities(states, weight, labels)
    torch.testing.assert_close(found, -next_token_nats(states.flatten(0, 1), weight, labels.flatten()).view(2, 3))
    by_hand = math.log(math.exp(states[0, 0] @ weight[5]) / sum(math.exp(states[0, 0] @ row) for row in weight))
    assert found[0, 0].item() == pytest.approx(by_hand)
    assert found[0, 1] == 0


def test_log_probabilities_have_the_derivatives_that_differences_give():
    states = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([1, IGNORED, 4])
    assert torch.autograd.gradcheck(lambda s, w: token_log_probabilities(s, w, labels), (states, weight))


def test_following_costs_what_each_graphs_answer_lacks_of_the_margin():
    # Right by more than the margin under both; right by too little; not moved by the edit; wrong under both.
    original, edited = odds(1.0, 0.1, 0.5, -1.0), odds(-1.0, -0.1, 0.5, 1.0)
    expected = 0 + (0.1 + 0.1) + (0 + 0.7) + (1.2 + 1.2)
    assert follow_loss(original, edited, 0.2).item() == pytest.approx(expected)


def test_an_answer_that_wins_by_the_margin_is_pushed_no_further():
    original, edited = odds(1.0, 0.1), odds(-1.0, -0.1)
    follow_loss(original, edited, 0.2).backward()
    assert original.grad.tolist() == [0.0, -1.0]
    assert edited.grad.tolist() == [0.0, 1.0]


def test_movement_costs_what_exceeds_the_tolerance_in_either_direction():
    original, moved = odds(0.0, 0.0, 1.0, -2.0), odds(0.05, 0.3, 0.5, -2.0)
    assert movement_loss(original, moved, 0.1).item() == pytest.approx(0.2 + 0.4)
    assert movement_loss(original, moved).item() == pytest.approx(0.05 + 0.3 + 0.5)


def test_movement_within_the_tolerance_has_no_gradient():
    original, moved = odds(0.0, 0.0), odds(0.05, 0.3)
    movement_loss(original, moved, 0.1).backward()
    assert moved.grad.tolist() == [0.0, 1.0]
    assert original.grad.tolist() == [0.0, -1.0]


def test_stability_costs_a_flip_and_keeps_to_the_answer_before():
    original, edited = odds(1.0, 1.0, -1.0, -1.0), odds(0.5, -0.5, -0.1, 0.4)
    loss = stability_loss(original, edited, 0.2)
    assert loss.item() == pytest.approx(0 + 0.7 + 0.1 + 0.6)
    loss.backward()
    assert original.grad is None
    assert edited.grad.tolist() == [0.0, -1.0, 1.0, 1.0]


def test_a_null_costs_every_effect_and_none_where_nothing_changed():
    original, edited = odds(0.3, -0.4), odds(0.3, 0.1)
    loss = null_loss(original, edited)
    loss.backward()
    assert loss.item() == pytest.approx(0.5)
    assert edited.grad.tolist() == [0.0, 1.0]


def test_no_examples_cost_nothing():
    nothing = odds()
    assert follow_loss(nothing, nothing, 0.2).item() == 0
    assert stability_loss(nothing, nothing, 0.2).item() == 0
    assert movement_loss(nothing, nothing).item() == 0

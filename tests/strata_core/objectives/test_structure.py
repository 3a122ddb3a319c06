"""Sums over labels, worked out by hand or by a loop."""

import math

import pytest
import torch

from strata_core.objectives.structure import class_loss, core_role_loss, predicate_loss, role_loss


def some_scores(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def nats(scores: torch.Tensor, label: int) -> float:
    return -math.log(math.exp(scores[label]) / sum(math.exp(score) for score in scores.tolist()))


def test_classes_sum_their_nats_over_what_is_annotated():
    scores, labels = some_scores(2, 3, 4), torch.tensor([[0, 3, -1], [2, -1, 1]])
    expected = sum(nats(scores[r, w], int(labels[r, w])) for r, w in [(0, 0), (0, 1), (1, 0), (1, 2)])
    assert class_loss(scores, labels).item() == pytest.approx(expected)


def test_forbidden_heads_take_no_part_and_leave_gradients_finite():
    scores = torch.tensor([[[0.0, float("-inf"), 1.0]]], requires_grad=True)
    loss = class_loss(scores, torch.tensor([[2]]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-1)))
    assert torch.isfinite(scores.grad).all()
    assert scores.grad[0, 0, 1] == 0


def test_equal_scores_cost_the_logarithm_of_the_number_of_classes():
    assert class_loss(torch.zeros(5, 7), torch.arange(5)).item() == pytest.approx(5 * math.log(7))


def test_predicates_sum_binary_cross_entropies_over_what_was_looked_at():
    log_odds = torch.tensor([[2.0, -1.0, 0.5]], dtype=torch.float64)
    expected = math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-1))
    assert predicate_loss(log_odds, torch.tensor([[1, 0, -1]])).item() == pytest.approx(expected)


def test_pairs_without_a_role_weigh_less():
    scores, roles = some_scores(2, 2, 3), torch.tensor([[0, 2], [0, -1]])
    expected = 0.2 * nats(scores[0, 0], 0) + nats(scores[0, 1], 2) + 0.2 * nats(scores[1, 0], 0)
    assert role_loss(scores, roles, none_role=0, none_weight=0.2).item() == pytest.approx(expected)


def test_a_none_weight_of_one_is_plain_cross_entropy():
    scores, roles = some_scores(2, 2, 3), torch.tensor([[0, 2], [0, 1]])
    torch.testing.assert_close(role_loss(scores, roles, none_role=0, none_weight=1.0), class_loss(scores, roles))


def test_core_roles_count_gold_core_cells_alone():
    scores, roles = some_scores(2, 3, 4), torch.tensor([[0, 1, 3], [2, -1, 0]])
    expected = nats(scores[0, 1], 1) + nats(scores[1, 0], 2)
    assert core_role_loss(scores, roles, (1, 2)).item() == pytest.approx(expected)


@pytest.mark.parametrize("rows", [0, 2])
def test_a_batch_without_labels_has_loss_and_gradient_zero(rows):
    scores = torch.randn(rows, 3, 4, requires_grad=True)
    labels = torch.full((rows, 3), -1)
    log_odds = scores[..., 0]
    total = class_loss(scores, labels) + role_loss(scores, labels, none_role=0, none_weight=0.2)
    total = total + core_role_loss(scores, labels, (1, 2)) + predicate_loss(log_odds, labels)
    total.backward()
    assert total.item() == 0
    assert torch.equal(scores.grad, torch.zeros_like(scores))


def test_bfloat16_scores_are_summed_in_float32():
    assert class_loss(torch.zeros(5, 7, dtype=torch.bfloat16), torch.arange(5)).dtype == torch.float32

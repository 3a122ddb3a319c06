"""The graph reasoner's losses against values worked out by hand and by slow loops."""

import math

import numpy as np
import pytest
import torch

from strata_core.corpus.treebanks.labels import NO_LABEL
from strata_core.objectives import graph_answers, graph_paths
from strata_core.objectives.structure import class_loss

torch.manual_seed(0)


def softmax(values):
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def test_several_answers_share_the_target_of_the_softmax_over_their_own_graph():
    scores = torch.tensor([1.0, 2.0, 0.5, 3.0, -1.0])
    nodes = torch.tensor([0, 0, 0, 2, 2])
    loss = graph_answers.answer_loss(scores, nodes, torch.tensor([0, 2, 3]), torch.tensor([0, 0, 2]), 3)
    first, second = softmax([1.0, 2.0, 0.5]), softmax([3.0, -1.0])
    expected = -(math.log(first[0]) + math.log(first[2])) / 2 - math.log(second[0])
    assert loss.item() == pytest.approx(expected, rel=1e-6)


def test_an_unknown_label_takes_no_part():
    scores = torch.tensor([[2.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    loss = class_loss(scores, torch.tensor([0, NO_LABEL]))
    assert loss.item() == pytest.approx(-math.log(softmax([2.0, 0.0, 0.0])[0]), rel=1e-6)
    support = graph_answers.verification_loss(
        torch.tensor([1.0, 9.0]), torch.tensor([True, False]), torch.tensor([True, False])
    )
    assert support.item() == pytest.approx(math.log(1 + math.exp(-1.0)), rel=1e-6)


def test_the_margin_is_met_when_the_twin_scores_that_much_more():
    scores = torch.tensor([0.0, 2.0, 0.5])
    pairs = torch.tensor([[0, 1], [2, 1], [1, 0]])
    # 1 - 2 < 0; 1 - 1.5 < 0; 1 + 2 = 3.
    assert graph_answers.pair_margin_loss(scores, pairs, 1.0).item() == pytest.approx(3.0)
    assert graph_answers.pair_margin_loss(scores, pairs, 2.0).item() == pytest.approx(0.5 + 4.0)
    assert graph_answers.pair_margin_loss(scores, pairs[:0], 1.0).item() == 0.0


def test_confidence_is_taught_the_quality_and_the_quality_learns_nothing():
    quality = torch.tensor([0.25, 1.0], requires_grad=True)
    log_odds = torch.tensor([0.0, 3.0], requires_grad=True)
    loss = graph_answers.confidence_loss(log_odds, quality, torch.tensor([True, False]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert quality.grad is None
    assert log_odds.grad.tolist() == pytest.approx([0.25, 0.0])  # sigmoid(0) - 0.25


def threshold_loss_by_hand(scores, supports):
    """Zhou et al. 2021, equations 4 to 6, with the threshold class at score 0."""
    positive = [score for score, right in zip(scores, supports, strict=True) if right]
    others = [score for score, right in zip(scores, supports, strict=True) if not right]
    among = sum(math.exp(score) for score in [*positive, 0.0])
    loss = -sum(math.log(math.exp(score) / among) for score in positive)
    return loss - math.log(1.0 / sum(math.exp(score) for score in [*others, 0.0]))


def test_path_selection_is_the_adaptive_thresholding_loss_of_each_example():
    scores = [1.0, -0.5, 2.0, 0.3, 0.1]
    supports = [True, False, True, False, False]
    owners = torch.tensor([0, 0, 0, 1, 1])
    loss = graph_paths.path_selection_loss(
        torch.tensor(scores), torch.tensor(supports), torch.ones(5, dtype=torch.bool), owners, 3
    )
    expected = threshold_loss_by_hand(scores[:3], supports[:3]) + threshold_loss_by_hand(scores[3:], supports[3:])
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_rows_that_are_no_path_change_no_loss():
    scores, supports = torch.tensor([1.0, -0.5, 9.0]), torch.tensor([True, False, False])
    owners, real = torch.tensor([0, 0, 0]), torch.tensor([True, True, False])
    for loss in (graph_paths.path_selection_loss, graph_paths.path_alignment_loss):
        padded = loss(scores, supports, real, owners, 1)
        assert padded.item() == pytest.approx(loss(scores[:2], supports[:2], real[:2], owners[:2], 1).item())


def test_alignment_is_info_nce_of_each_supporting_path_against_the_others():
    cosines, supports = [0.9, 0.2, -0.4, 0.7], [True, False, False, True]
    loss = graph_paths.path_alignment_loss(
        torch.tensor(cosines),
        torch.tensor(supports),
        torch.ones(4, dtype=torch.bool),
        torch.zeros(4, dtype=torch.long),
        1,
        temperature=0.5,
    )
    others = math.exp(0.4) + math.exp(-0.8)
    expected = sum(-math.log(math.exp(c / 0.5) / (math.exp(c / 0.5) + others)) for c in (0.9, 0.7))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_next_hop_gives_each_item_the_share_of_all_right_edges():
    scores = torch.tensor([1.0, 0.0, 2.0, 0.5, 0.5])
    items = torch.tensor([0, 0, 0, 1, 1])
    right = torch.tensor([True, False, True, False, True])
    first, second = softmax([1.0, 0.0, 2.0]), softmax([0.5, 0.5])
    expected = -math.log(first[0] + first[2]) - math.log(second[1])
    assert graph_paths.next_hop_loss(scores, items, right, 2).item() == pytest.approx(expected, rel=1e-5)


def test_losses_of_nothing_are_zero_and_differentiable():
    empty, none = torch.zeros(0, requires_grad=True), torch.zeros(0, dtype=torch.long)
    no = torch.zeros(0, dtype=torch.bool)
    total = (
        graph_answers.answer_loss(empty, none, none, none, 1)
        + graph_paths.path_selection_loss(empty, no, no, none, 2)
        + graph_paths.path_alignment_loss(empty, no, no, none, 2)
        + graph_paths.next_hop_loss(empty, none, no, 0)
        + graph_paths.link_loss(empty, no)
        + graph_paths.node_loss(empty, no)
    )
    total.backward()
    assert total.item() == 0.0


def test_link_node_and_relation_losses_are_sums():
    scores, labels = torch.randn(6), torch.tensor([True, False, True, True, False, False])
    probability = 1 / (1 + np.exp(-scores.numpy()))
    expected = -np.log(np.where(labels.numpy(), probability, 1 - probability)).sum()
    assert graph_paths.link_loss(scores, labels).item() == pytest.approx(expected, rel=1e-5)
    assert graph_paths.node_loss(scores, labels).item() == pytest.approx(expected, rel=1e-5)
    rows = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    expected = -math.log(softmax([0.0, 1.0])[0]) - math.log(softmax([2.0, 0.0])[0])
    assert graph_paths.relation_loss(rows, torch.tensor([0, 0])).item() == pytest.approx(expected, rel=1e-5)

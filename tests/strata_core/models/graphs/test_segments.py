"""Rows taken and summed, against loops."""

import math

import pytest
import torch

from strata_core.models.graphs.segments import largest_rows, segment_logsumexp, sum_rows, take_rows

OWNERS = torch.tensor([2, 0, 2, 2, 0])


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 3)])
def test_sums_of_rows_by_owner(shape):
    values = torch.randn(shape, dtype=torch.float64)
    sums = sum_rows(values, OWNERS, 4)
    for owner in range(4):
        rows = [values[row] for row in range(5) if OWNERS[row] == owner]
        torch.testing.assert_close(sums[owner], sum(rows, torch.zeros(shape[1:], dtype=torch.float64)))


@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 2, 4)])
def test_taken_rows_and_their_gradient_are_those_of_plain_indexing(shape):
    values = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda rows: take_rows(rows, OWNERS), values)
    assert torch.equal(take_rows(values, OWNERS), values[OWNERS])


def test_the_largest_of_each_segment_and_the_least_where_there_is_none():
    values = torch.tensor([[1.0, -5.0], [0.5, 2.0], [3.0, -4.0], [2.0, -9.0], [0.25, 7.0]])
    assert largest_rows(values, OWNERS, 3, least=-1.0).tolist() == [[0.5, 7.0], [-1.0, -1.0], [3.0, -1.0]]


def test_log_sum_exp_by_segment_holds_for_large_scores():
    scores = torch.tensor([900.0, 1.0, 901.0, -50.0, 2.0], requires_grad=True)
    result = segment_logsumexp(scores, OWNERS, 3)
    assert result[0].item() == pytest.approx(math.log(math.exp(1) + math.exp(2)), rel=1e-6)
    assert result[2].item() == pytest.approx(901 + math.log1p(math.exp(-1)), rel=1e-6)
    assert result[1].item() < -9e3
    result[[0, 2]].sum().backward()
    torch.testing.assert_close(scores.grad[:3], torch.tensor([0.268941, 0.268941, 0.731059]), rtol=1e-4, atol=1e-5)


def test_nothing_taken_and_nothing_summed():
    nothing = torch.zeros(0, dtype=torch.long)
    assert take_rows(torch.zeros(0, 3), nothing).shape == (0, 3)
    assert sum_rows(torch.zeros(0, 1, 3), nothing, 2).tolist() == [[[0.0] * 3]] * 2

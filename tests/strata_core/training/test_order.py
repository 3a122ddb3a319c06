"""The sample order: a permutation of each epoch, computed at any position."""

import numpy as np
import pytest

from strata_core.training.order import SampleOrder


@pytest.mark.parametrize("n_samples", [1, 2, 3, 4, 5, 17, 64, 65, 1000, 4097])
def test_every_epoch_holds_each_sample_once(n_samples):
    order = SampleOrder(n_samples, seed=7)
    for epoch in range(3):
        samples = order.samples(epoch * n_samples, n_samples)
        assert sorted(samples.tolist()) == list(range(n_samples))


def test_a_range_across_epochs_is_the_samples_asked_for_one_by_one():
    order = SampleOrder(50, seed=7)
    together = order.samples(30, 150)
    one_by_one = [int(order.samples(position, 1)[0]) for position in range(30, 180)]
    assert together.tolist() == one_by_one


def test_epochs_seeds_and_purposes_have_different_orders():
    first = SampleOrder(1000, seed=7).samples(0, 1000)
    assert not np.array_equal(first, SampleOrder(1000, seed=7).samples(1000, 1000))
    assert not np.array_equal(first, SampleOrder(1000, seed=8).samples(0, 1000))
    assert not np.array_equal(first, SampleOrder(1000, seed=7, purpose="other").samples(0, 1000))


def test_the_order_looks_shuffled():
    samples = SampleOrder(10_000, seed=1).samples(0, 10_000)
    # For a random permutation the rank correlation with the identity is normal with deviation 1 / sqrt(n) = 0.01.
    correlation = np.corrcoef(samples, np.arange(10_000))[0, 1]
    assert abs(correlation) < 0.05
    # A random permutation has one fixed point on average, and more than ten with probability below 1e-8.
    assert int((samples == np.arange(10_000)).sum()) <= 10


def test_far_positions_cost_no_more_than_near_ones():
    order = SampleOrder(2**40, seed=3)
    samples = order.samples(2**40 - 2, 4)
    assert len(set(samples.tolist())) >= 3
    assert all(0 <= sample < 2**40 for sample in samples.tolist())

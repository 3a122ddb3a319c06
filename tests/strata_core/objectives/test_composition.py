"""Composition losses against sums written out example by example."""

from __future__ import annotations

import math

import numpy as np
import torch

from strata_core.objectives.composition import associativity_loss, closure_loss, composition_loss

EXAMPLES = torch.tensor([0, 1, 1])
WEIGHTS = torch.tensor([1.0, 0.5, 0.5])


def numbers(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).normal(size=shape))


def test_cross_entropy_is_averaged_over_an_example_s_paths_and_bracketings():
    scores, targets = numbers(3, 2, 4), torch.tensor([2, 0])
    expected = 0.0
    for example, paths in enumerate([[0], [1, 2]]):
        nats = []
        for path in paths:
            for logits in scores[path].tolist():
                total = sum(math.exp(logit) for logit in logits)
                nats.append(math.log(total) - logits[int(targets[example])])
        expected += sum(nats) / len(nats)
    found = composition_loss(scores, targets, EXAMPLES, WEIGHTS)
    assert math.isclose(float(found), expected, rel_tol=1e-6)


def test_associativity_is_half_the_mean_squared_distance_of_two_bracketings():
    states = torch.tensor([[[1.0, 2.0], [1.0, 4.0]], [[0.0, 0.0], [3.0, 1.0]], [[5.0, 5.0], [5.0, 5.0]]])
    expected = (0 + 4) / 2 / 2 + 0.5 * (9 + 1) / 2 / 2
    assert math.isclose(float(associativity_loss(states, WEIGHTS)), expected, rel_tol=1e-6)


def test_closure_is_the_mean_squared_distance_from_the_named_relation():
    states = torch.tensor([[[1.0, 2.0], [1.0, 4.0]], [[0.0, 0.0], [3.0, 1.0]], [[5.0, 5.0], [5.0, 5.0]]])
    named = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    expected = (0 + 4 + 0 + 16) / 4 + 0.5 * (0 + 1 + 9 + 0) / 4
    assert math.isclose(float(closure_loss(states, named, WEIGHTS)), expected, rel_tol=1e-6)

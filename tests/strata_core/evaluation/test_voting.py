"""Votes of paths against means written out example by example."""

from __future__ import annotations

import numpy as np
import torch

from strata_core.evaluation.voting import vote


def test_a_vote_is_the_mean_probability_over_paths_and_bracketings():
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 2, 4)))
    found = vote(scores, torch.tensor([0, 1, 1]), torch.tensor([1.0, 0.5, 0.5]), 2)
    probabilities = torch.softmax(scores, dim=-1)
    expected = torch.stack([probabilities[0].mean(dim=0), probabilities[1:].mean(dim=(0, 1))])
    torch.testing.assert_close(found, expected.float())
    torch.testing.assert_close(found.sum(dim=1), torch.ones(2))

"""Fitted temperatures give back those that the data was made with."""

import numpy as np
import pytest

from strata_core.evaluation.temperature import fit_binary_temperature, fit_class_temperature


def test_scores_made_too_sharp_are_found_out():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20_000, 3)) * 2
    powers = np.exp(scores)
    shares = powers / powers.sum(axis=1, keepdims=True)
    labels = (rng.random(20_000)[:, None] > shares.cumsum(axis=1)).sum(axis=1).clip(max=2)
    assert fit_class_temperature(scores * 3, labels) == pytest.approx(3, rel=0.05)


def test_log_odds_too_flat_are_found_out_from_shares_in_place_of_outcomes():
    log_odds = np.random.default_rng(1).normal(size=5_000) * 2
    shares = 1 / (1 + np.exp(-log_odds))
    assert fit_binary_temperature(log_odds / 4, shares) == pytest.approx(0.25, rel=1e-3)


def test_without_data_nothing_changes():
    assert fit_binary_temperature(np.zeros(0), np.zeros(0)) == 1.0
    assert fit_class_temperature(np.zeros((0, 3)), np.zeros(0, dtype=int)) == 1.0

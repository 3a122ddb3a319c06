"""The interventions table on sentences whose losses are known."""

import numpy as np
import pytest

from strata_core.evaluation.interventions import interventions_table

TOKENS = np.array([10, 30])
NATS = {
    "none": np.array([20.0, 60.0]),
    "typed": np.array([15.0, 45.0]),
    "untyped": np.array([20.0, 60.0]),
    "random": np.array([21.0, 63.0]),
}


def test_losses_are_nats_per_token_over_all_sentences():
    rows = interventions_table(NATS, TOKENS, resamples=200)["interventions"]
    assert [(row["graph"], row["loss"]) for row in rows] == [
        ("none", 2.0),
        ("typed", 1.5),
        ("untyped", 2.0),
        ("random", pytest.approx(2.1)),
    ]
    assert all((row["sentences"], row["tokens"]) == (2, 40) for row in rows)


def test_differences_are_paired_by_sentence():
    """Every sentence loses a half a token, so no resample says otherwise."""
    found = interventions_table(NATS, TOKENS, resamples=200)["intervention_differences"]
    values = {(row["of"], row["minus"]): row for row in found}
    assert set(values) == {
        ("typed", "none"),
        ("untyped", "none"),
        ("random", "none"),
        ("typed", "untyped"),
        ("typed", "random"),
    }
    typed = values["typed", "none"]
    assert (typed["difference"], typed["low"], typed["high"]) == pytest.approx((-0.5, -0.5, -0.5))
    assert values["untyped", "none"]["difference"] == 0
    assert values["typed", "random"]["difference"] == pytest.approx(-0.6)

"""The paired bootstrap against resampling in a loop and against theory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from strata_core.evaluation.bootstrap import f1, paired_bootstrap, ratio
from strata_core.evaluation.roles import MatchCounts


def counts_of(right):
    return np.stack([right, np.ones(len(right))], axis=1)


def test_the_interval_of_a_mean_difference_is_that_of_its_standard_error():
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=400), generator.normal(0.1, 1, size=400)
    found = paired_bootstrap(counts_of(first), counts_of(second), seed=1, resamples=20_000)
    difference = second - first
    error = difference.std() / math.sqrt(400)
    assert found.difference == pytest.approx(difference.mean())
    assert found.low == pytest.approx(difference.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(difference.mean() + 1.96 * error, abs=0.1 * error)


def test_a_loop_over_resamples_gives_the_same_spread():
    generator = np.random.default_rng(3)
    tokens = generator.integers(1, 30, size=60)
    first, second = generator.gamma(2, size=60) * tokens, generator.gamma(2.2, size=60) * tokens
    found = paired_bootstrap(
        np.stack([first, tokens], axis=1), np.stack([second, tokens], axis=1), seed=5, resamples=20_000, confidence=0.9
    )
    drawn = []
    for _ in range(20_000):
        chosen = generator.integers(60, size=60)
        drawn.append((second[chosen].sum() - first[chosen].sum()) / tokens[chosen].sum())
    low, high = np.quantile(drawn, [0.05, 0.95])
    assert (found.low, found.high) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))


def test_pairing_takes_out_what_examples_share():
    hardness = np.random.default_rng(4).normal(0, 100, size=300)
    found = paired_bootstrap(counts_of(hardness), counts_of(hardness + 0.5), seed=1, resamples=2000)
    assert (found.low, found.high) == (pytest.approx(0.5), pytest.approx(0.5))
    assert found.p_value == pytest.approx(2 / 2001)


def test_equal_systems_do_not_differ():
    same = counts_of(np.random.default_rng(1).random(50))
    found = paired_bootstrap(same, same, seed=1, resamples=500)
    assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1.0)


def test_p_values_of_systems_that_do_not_differ_are_rarely_small():
    generator = np.random.default_rng(9)
    small = 0
    for trial in range(300):
        first, second = generator.normal(size=(2, 80))
        small += paired_bootstrap(counts_of(first), counts_of(second), seed=trial, resamples=400).p_value <= 0.05
    # 15 of 300 are expected; a binomial count exceeds 30 once in more than a thousand repetitions.
    assert 3 <= small <= 30


def test_the_result_is_a_function_of_the_seed_and_not_of_the_chunks(monkeypatch):
    generator = np.random.default_rng(2)
    first, second = counts_of(generator.random(40)), counts_of(generator.random(40))
    once = paired_bootstrap(first, second, seed=1, resamples=1000)
    monkeypatch.setattr("strata_core.evaluation.bootstrap.WEIGHTS_IN_MEMORY", 500)
    assert paired_bootstrap(first, second, seed=1, resamples=1000) == once
    assert paired_bootstrap(first, second, seed=2, resamples=1000).low != once.low


def test_swapping_the_systems_turns_the_difference_round():
    generator = np.random.default_rng(2)
    first, second = counts_of(generator.random(40)), counts_of(generator.random(40))
    forth, back = paired_bootstrap(first, second, seed=1), paired_bootstrap(second, first, seed=1)
    assert (back.difference, back.low, back.high) == pytest.approx((-forth.difference, -forth.high, -forth.low))
    assert back.p_value == forth.p_value


def test_f1_of_sums_is_that_of_match_counts():
    sums = np.array([[4.0, 6.0, 3.0], [0.0, 0.0, 0.0]])
    assert f1(sums).tolist() == [MatchCounts(4, 6, 3).f1, MatchCounts().f1]
    assert ratio(np.array([[3.0, 4.0]])).tolist() == [0.75]


@pytest.mark.parametrize(("first", "second"), [((3, 2), (4, 2)), ((3,), (3,)), ((0, 2), (0, 2))])
def test_examples_that_are_no_pairs_are_refused(first, second):
    with pytest.raises(ValueError, match="examples, counts"):
        paired_bootstrap(np.zeros(first), np.zeros(second), seed=1)

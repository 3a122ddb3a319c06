import numpy as np
import pytest

from strata_core.errors import UsageError
from strata_core.inference.sampling import Sampling, distribution, draw, prompt_key, random_number

FOUR = np.log(np.array([0.1, 0.4, 0.2, 0.3]))
"""Four tokens with these probabilities."""


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Sampling(), [0.1, 0.4, 0.2, 0.3]),
        (Sampling(greedy=True), [0, 1, 0, 0]),
        # Temperature 1/2 squares: 1, 16, 4, 9 of 30.
        (Sampling(temperature=0.5), [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
        (Sampling(top_k=2), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(top_k=9), [0.1, 0.4, 0.2, 0.3]),
        # 0.4 + 0.3 reach 0.65; 0.4 alone does not.
        (Sampling(top_p=0.65), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(top_p=0.39), [0, 1, 0, 0]),
        # At least half of 0.4.
        (Sampling(min_p=0.49), [0, 4 / 9, 2 / 9, 3 / 9]),
        # Of the three likeliest (4, 3, 2 of 9), 4/9 + 3/9 reach 0.7.
        (Sampling(top_k=3, top_p=0.7), [0, 4 / 7, 0, 3 / 7]),
    ],
)
def test_distributions_worked_by_hand(rule, expected):
    np.testing.assert_allclose(distribution(FOUR, (), rule), expected, atol=1e-12)


def test_the_penalty_divides_positive_scores_and_multiplies_negative_ones_once():
    scores = np.array([2.0, -1.0, 1.0, 0.5])
    penalised = np.array([1.0, -2.0, 1.0, 0.5])
    found = distribution(scores, (0, 1, 0), Sampling(repetition_penalty=2.0))
    np.testing.assert_allclose(found, np.exp(penalised) / np.exp(penalised).sum(), atol=1e-12)
    assert distribution(scores, (0,), Sampling(greedy=True, repetition_penalty=4.0)).argmax() == 2


def test_of_equal_tokens_the_lower_ids_stay():
    np.testing.assert_allclose(distribution(np.zeros(4), (), Sampling(top_k=2)), [0.5, 0.5, 0, 0])
    assert distribution(np.zeros(4), (), Sampling(greedy=True)).argmax() == 0


def test_draws_follow_the_cumulated_probabilities():
    probabilities = np.array([0.0, 0.25, 0.0, 0.75, 0.0])
    assert [draw(probabilities, number) for number in (0.0, 0.2499, 0.25, 0.9999999999999999)] == [1, 1, 3, 3]


def test_random_numbers_are_even_and_differ_by_every_part_of_their_key():
    base = (1, prompt_key([1, 23]), 0, 0)
    others = [(2, *base[1:]), (1, prompt_key([12, 3]), 0, 0), (*base[:2], 1, 0), (*base[:3], 1)]
    assert len({random_number(*key) for key in (base, *others)}) == 5
    numbers = [random_number(*base[:3], position) for position in range(2000)]
    assert min(numbers) >= 0 and max(numbers) < 1
    assert np.histogram(numbers, bins=4, range=(0, 1))[0].min() > 430


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"temperature": 0.0}, "--temperature 0.0: must be a number above 0"),
        ({"temperature": float("nan")}, "--temperature nan"),
        ({"top_k": 0}, "--top-k 0: must be at least 1"),
        ({"top_p": 0.0}, "--top-p 0.0: must be above 0 and at most 1"),
        ({"min_p": 1.5}, "--min-p 1.5: must be from 0 to 1"),
        ({"repetition_penalty": -1.0}, "--repetition-penalty -1.0"),
    ],
)
def test_values_outside_their_bounds_are_refused(fields, said):
    with pytest.raises(UsageError, match=said):
        Sampling(**fields)

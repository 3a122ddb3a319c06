"""Calibration measures by hand and by slow, obvious versions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from strata_core.evaluation.calibration import area_under_risk_coverage, brier_score, expected_calibration_error

MEASURES = [expected_calibration_error, brier_score, area_under_risk_coverage]


def test_calibration_error_by_hand():
    # Two bins: (0.2, 0.4) with accuracy 1/2 and mean 0.3; (0.9, 0.8, 0.7) with accuracy 2/3 and mean 0.8.
    confidences, correct = np.array([0.2, 0.4, 0.9, 0.8, 0.7]), np.array([True, False, True, True, False])
    expected = 2 / 5 * abs(0.5 - 0.3) + 3 / 5 * abs(2 / 3 - 0.8)
    assert expected_calibration_error(confidences, correct, bins=2) == pytest.approx(expected)


def test_bins_have_their_upper_edges():
    # 0.5 lies in the first of two bins together with 0: accuracy 1/2, mean 0.25.
    assert expected_calibration_error(np.array([0.0, 0.5]), np.array([0, 1]), bins=2) == pytest.approx(0.25)
    assert expected_calibration_error(np.array([0.0, 1.0]), np.array([0, 1]), bins=15) == 0


def test_a_loop_over_bins_gives_the_same_error():
    generator = np.random.default_rng(1)
    confidences = generator.random(500)
    correct = generator.random(500) < confidences**2
    error = 0.0
    for low, high in itertools.pairwise([k / 10 for k in range(11)]):
        inside = [i for i in range(500) if low < confidences[i] <= high]
        if inside:
            error += len(inside) / 500 * abs(np.mean(confidences[inside]) - np.mean(correct[inside]))
    assert expected_calibration_error(confidences, correct, bins=10) == pytest.approx(error)


def test_brier_by_hand():
    assert brier_score(np.array([1.0, 0.0, 0.5]), np.array([1, 1, 0])) == pytest.approx((0 + 1 + 0.25) / 3)


def test_risk_coverage_by_hand():
    # Most confident first, losses 0, 1, 0: risks 0, 1/2, 1/3.
    area = area_under_risk_coverage(np.array([0.2, 0.9, 0.5]), np.array([0, 0, 1]))
    assert area == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)


def test_ties_are_averaged_over_all_orders():
    confidences, losses = [0.9, 0.5, 0.5, 0.5, 0.1], [0, 1, 0, 0, 1]
    areas = []
    for order in itertools.permutations(range(5)):
        if all(confidences[a] >= confidences[b] for a, b in itertools.pairwise(order)):
            taken = [losses[place] for place in order]
            areas.append(sum(Fraction(sum(taken[:k]), k) for k in range(1, 6)) / 5)
    expected = float(sum(areas) / len(areas))
    assert area_under_risk_coverage(np.array(confidences), np.array(losses)) == pytest.approx(expected)


def test_constant_confidence_has_the_mean_risk():
    losses = np.array([0, 1, 1, 0, 1])
    assert area_under_risk_coverage(np.full(5, 0.7), losses) == pytest.approx(0.6)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("first", "second"), [([0.5, 1.2], [0, 1]), ([0.5, np.nan], [0, 1]), ([0.5], [0, 1]), ([], []), ([[0.5]], [[1]])]
)
def test_what_is_no_probability_is_refused(measure, first, second):
    with pytest.raises(ValueError):
        measure(np.array(first), np.array(second))

"""Learning rates against values worked out by hand (CASES T10)."""

import math

import pytest

from strata_core.training.schedule import CosineSchedule


def rates(max_steps, warmup, peak=1.0, final=0.1):
    schedule = CosineSchedule(peak=peak, final=final, warmup_steps=warmup, total_steps=max_steps)
    return [schedule.rate(step) for step in range(max_steps)]


def test_without_warmup_the_first_step_is_at_the_peak():
    assert rates(10, 0)[0] == 1.0


def test_warmup_rises_linearly_to_the_peak():
    assert rates(10, 2)[:2] == [0.5, 1.0]
    assert rates(100, 4)[:4] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(("max_steps", "warmup"), [(10, 0), (10, 2), (10, 9), (2, 0), (1000, 100)])
def test_the_last_step_is_at_the_final_rate_exactly(max_steps, warmup):
    assert rates(max_steps, warmup)[-1] == pytest.approx(0.1)


def test_a_single_step_is_at_the_peak():
    assert rates(1, 0) == [1.0]


def test_the_middle_of_the_cosine_lies_halfway():
    # Steps 0..10 without warm-up: step 5 is halfway, where the cosine is zero.
    assert rates(11, 0)[5] == pytest.approx((1.0 + 0.1) / 2)
    # A quarter of the way: 0.1 + 0.45 * (1 + cos(pi / 4)).
    assert rates(9, 0)[2] == pytest.approx(0.1 + 0.45 * (1 + math.sqrt(0.5)))


@pytest.mark.parametrize("warmup", [0, 1, 3, 9])
def test_rates_fall_after_the_warmup_and_stay_positive(warmup):
    after = rates(10, warmup)[max(warmup - 1, 0) :]
    assert after == sorted(after, reverse=True)
    assert all(0 < rate <= 1.0 for rate in after)


def test_steps_beyond_the_schedule_stay_at_the_final_rate():
    schedule = CosineSchedule(peak=1.0, final=0.1, warmup_steps=2, total_steps=10)
    assert [schedule.rate(step) for step in (9, 10, 500)] == [pytest.approx(0.1), 0.1, 0.1]

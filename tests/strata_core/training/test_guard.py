"""The guard against a slow, obvious version of the same rules."""

import math
import random
import statistics

import pytest
import torch

from strata_core.training.guard import UpdateGuard


class SlowGuard:
    """The rules of the reference, with Python lists."""

    def __init__(self, factor, limit):
        self.factor, self.limit = factor, limit
        self.norms, self.applied, self.spikes, self.bad, self.streak = [], 0, 0, 0, 0

    def skip(self, norm, excused):
        halted = self.streak >= self.limit
        if not math.isfinite(norm):
            self.bad += 1
            if not halted and not excused:
                self.streak += 1
            return True
        if halted:
            return True
        self.streak = 0
        if self.factor and self.applied >= 50 and norm > self.factor * statistics.median(self.norms[-200:]):
            self.spikes += 1
            return True
        self.norms.append(norm)
        self.applied += 1
        return False


def skip(guard, norm, excused=False):
    norm = torch.tensor(norm)
    return bool(guard.skip(norm, torch.isfinite(norm), torch.tensor(excused)))


@pytest.mark.parametrize("seed", range(4))
def test_it_decides_as_the_slow_version_does(seed):
    rng = random.Random(seed)
    guard = UpdateGuard(torch.device("cpu"), spike_factor=3.0, nonfinite_limit=4)
    slow = SlowGuard(3.0, 4)
    for _ in range(600):
        norm = rng.choice([math.inf, math.nan]) if rng.random() < 0.1 else rng.lognormvariate(0, 0.8)
        norm = float(torch.tensor(norm))
        excused = rng.random() < 0.3
        assert skip(guard, norm, excused) == slow.skip(norm, excused)
    assert int(guard.applied) == slow.applied
    assert int(guard.spikes) == slow.spikes
    assert int(guard.nonfinite) == slow.bad
    assert slow.spikes > 0


def test_no_spike_is_looked_for_before_fifty_applied_updates():
    guard = UpdateGuard(torch.device("cpu"), spike_factor=2.0, nonfinite_limit=3)
    for _ in range(49):
        assert not skip(guard, 1.0)
    assert not skip(guard, 100.0)
    assert skip(guard, 100.0)


def test_without_a_factor_nothing_finite_is_skipped():
    guard = UpdateGuard(torch.device("cpu"), spike_factor=None, nonfinite_limit=3)
    assert not any(skip(guard, norm) for norm in [1.0] * 60 + [1e30])


def test_it_halts_after_the_limit_and_lets_nothing_through_then():
    guard = UpdateGuard(torch.device("cpu"), spike_factor=None, nonfinite_limit=2)
    assert skip(guard, math.nan) and not bool(guard.halted)
    assert skip(guard, math.nan) and bool(guard.halted)
    assert skip(guard, 1.0)


def test_overflows_of_the_loss_scale_do_not_halt():
    guard = UpdateGuard(torch.device("cpu"), spike_factor=None, nonfinite_limit=2)
    assert all(skip(guard, math.inf, excused=True) for _ in range(10))
    assert not bool(guard.halted)
    assert int(guard.nonfinite) == 10


def test_its_state_brings_back_every_decision():
    first = UpdateGuard(torch.device("cpu"), spike_factor=3.0, nonfinite_limit=3)
    rng = random.Random(5)
    norms = [rng.lognormvariate(0, 1) for _ in range(500)]
    for norm in norms[:333]:
        skip(first, norm)
    second = UpdateGuard(torch.device("cpu"), spike_factor=3.0, nonfinite_limit=3)
    second.load(first.state())
    assert [skip(first, norm) for norm in norms[333:]] == [skip(second, norm) for norm in norms[333:]]
    assert first.state() == second.state()

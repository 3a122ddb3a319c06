"""States held against each other: bits for tensors, values for JSON, and figures worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from strata_core.replay.state_comparison import record_differences, tensor_differences, value_differences


def compared(claimed, replayed, before=None):
    start = {} if before is None else {"w": before}
    return list(tensor_differences("f", {"w": claimed}, {"w": replayed}, start, step=3))


def test_equal_bits_are_equal_also_where_they_are_no_numbers():
    assert compared(torch.tensor([math.nan, -math.inf]), torch.tensor([math.nan, -math.inf])) == []
    assert compared(torch.tensor(2.0), torch.tensor(2.0)) == []
    assert compared(torch.empty(0), torch.empty(0)) == []


def test_bits_count_and_not_values():
    (difference,) = compared(torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0]))
    assert (difference.what, difference.largest) == ("1 of 2 elements differ", 0.0)


def test_the_largest_difference_and_the_part_of_the_way():
    # The way is (3, 4), of length 5; what is off is (0, 0.5).
    (difference,) = compared(torch.tensor([4.0, 5.5]), torch.tensor([4.0, 5.0]), before=torch.tensor([1.0, 1.0]))
    assert difference.largest == 0.5
    assert difference.relative == pytest.approx(0.1)
    assert difference.is_within(0.11) and not difference.is_within(0.09) and not difference.is_within(None)


def test_a_tensor_without_a_start_has_come_all_the_way():
    (difference,) = compared(torch.tensor([2.0]), torch.tensor([4.0]))
    assert difference.relative == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("claimed", "replayed", "before"),
    [
        (torch.tensor([math.nan]), torch.tensor([1.0]), torch.tensor([0.0])),
        (torch.tensor([1.5]), torch.tensor([1.0]), torch.tensor([1.0])),
        (torch.tensor([1.0]), torch.tensor([1.0, 1.0]), torch.tensor([0.0, 0.0])),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64), torch.tensor([0.0])),
    ],
    ids=["not a number", "did not move", "another shape", "another dtype"],
)
def test_what_cannot_be_rounding_is_within_no_tolerance(claimed, replayed, before):
    (difference,) = compared(claimed, replayed, before)
    assert not difference.is_within(1e9)


def test_a_count_of_updates_is_exact():
    claimed, replayed = {"w.step": torch.tensor(999.0)}, {"w.step": torch.tensor(1000.0)}
    (difference,) = tensor_differences("f", claimed, replayed, {}, step=1)
    assert not difference.is_within(0.5)


def test_values_are_named_by_their_path():
    claimed = {"guard": {"norms": [1.0, 2.0]}, "step": 4, "best": None, "old": 1}
    replayed = {"guard": {"norms": [1.0, 2.5]}, "step": 5, "best": None, "new": 1}
    found = {difference.name: difference for difference in value_differences("f", claimed, replayed, step=4)}
    assert found.keys() == {"guard.norms[1]", "step", "old", "new"}
    assert found["guard.norms[1]"].relative == pytest.approx(0.2)
    assert found["step"].relative is None
    assert (found["old"].claimed, found["old"].replayed) == (1, "(absent)")


def test_an_integer_is_not_a_truth_value():
    assert len(list(value_differences("f", {"pending": 0}, {"pending": False}, step=1))) == 1


def test_records_of_the_steps_asked_for_are_compared_without_their_timing():
    claimed = [
        {"step": 1, "loss": 9.0},
        {"step": 2, "loss": 4.0, "timing": {"seconds": 1.0}},
        {"step": 4, "loss": 3.0},
        {"step": 5, "loss": 9.0},
        "no record",
    ]
    replayed = [{"step": step, "loss": float(6 - step), "timing": {"seconds": 2.0}} for step in (2, 3, 4)]
    (difference,) = record_differences("metrics.jsonl", claimed, replayed, range(2, 5))
    assert (difference.step, difference.name, difference.claimed, difference.replayed) == (4, "loss", 3.0, 2.0)

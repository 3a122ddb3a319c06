import pytest

from strata_core.training.checkpoint.retention import steps_to_remove


@pytest.mark.parametrize(
    ("steps", "saved", "best", "keep_last", "keep_every", "removed"),
    [
        ([1, 2, 3], 3, None, 3, 0, []),
        ([1, 2, 3, 4], 4, None, 3, 0, [1]),
        ([9, 10, 10000], 10000, None, 2, 0, [9]),
        ([10000, 9, 10], 10000, None, 1, 0, [9, 10]),
        ([1, 2, 3, 4], 4, 2, 1, 0, [1, 3]),
        ([5, 10, 15, 20, 25], 25, None, 1, 10, [5, 15]),
        ([1], 1, None, 1, 0, []),
        ([1, 2], 2, None, 0, 0, [1]),
        ([7, 10, 11], 7, None, 1, 0, [10]),
    ],
)
def test_the_last_the_best_and_every_kth_stay(steps, saved, best, keep_last, keep_every, removed):
    assert steps_to_remove(steps, saved=saved, best=best, keep_last=keep_last, keep_every=keep_every) == removed

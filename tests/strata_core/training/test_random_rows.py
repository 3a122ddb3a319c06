"""Rows of random numbers without those before them."""

import numpy as np
import pytest

from strata_core.training.random_rows import random_rows


@pytest.mark.parametrize(("first", "stop"), [(0, 9), (3, 7), (8, 9), (4, 4)])
def test_rows_are_those_of_the_whole_array(first, stop):
    whole = np.random.default_rng(77).random((9, 5, 2, 7))
    assert np.array_equal(random_rows(77, first, (stop - first, 5, 2, 7)), whole[first:stop])

"""Some rows of an array of random numbers, as they are when all of it is drawn."""

from __future__ import annotations

import math

import numpy as np


def random_rows(seed: int, first: int, shape: tuple[int, ...]) -> np.ndarray:
    """Rows from `first` on, of numbers drawn row by row, without drawing those before.

    PCG64 gives one number in [0, 1) with each of its steps, and can take many steps at once.

    Returns:
        float64 of that shape: rows first to first + shape[0] - 1.
    """
    bits = np.random.PCG64(seed)
    bits.advance(first * math.prod(shape[1:]))
    return np.random.Generator(bits).random(shape)

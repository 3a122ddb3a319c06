"""Random numbers in bulk, each a pure function of a key and its place: counters through SplitMix64."""

from __future__ import annotations

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniform_draws(keys: np.ndarray, places: np.ndarray) -> np.ndarray:
    """float64 in [0, 1), one for each pair of a key and a place.

    Args:
        keys: uint64 [N], of derive_seed.
        places: int64 [N], counts the draws of a key from 0.
    """
    state = mix(keys + (places.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def mix(values: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014); uint64 in, uint64 out, wrapping."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

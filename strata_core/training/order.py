"""The order in which a run sees its samples: a pure function of (seed, position), with nothing to save or lose.

Positions count samples from the start of the run. Each epoch is one permutation of the sample indices, computed on
demand by a Feistel network with cycle walking (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains"), so
memory does not grow with the data and any position can be asked for directly.
"""

from __future__ import annotations

import numpy as np

from strata_core.randomness import derive_seed
from strata_core.training.keyed_draws import mix

_ROUNDS = 8


class SampleOrder:
    """Maps positions in a run to sample indices.

    Args:
        n_samples: how many samples one epoch has, at least 1.
        seed: the run's seed.
        purpose: keeps the orders of several data streams of one run apart.
    """

    def __init__(self, n_samples: int, seed: int, purpose: str = "order") -> None:
        if n_samples < 1:
            raise ValueError(f"an order needs at least one sample, got {n_samples}")
        self.n_samples = n_samples
        self._seed = seed
        self._purpose = purpose
        self._half_bits = max(1, ((n_samples - 1).bit_length() + 1) // 2)

    def samples(self, start: int, count: int) -> np.ndarray:
        """The sample indices at positions start .. start+count-1, int64 [count]; they may cross epochs."""
        positions = np.arange(start, start + count, dtype=np.int64)
        epochs = positions // self.n_samples
        indices = np.empty(count, dtype=np.int64)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            indices[here] = self._permute(positions[here] % self.n_samples, int(epoch))
        return indices

    def _permute(self, values: np.ndarray, epoch: int) -> np.ndarray:
        keys = [derive_seed(self._seed, self._purpose, epoch, turn) for turn in range(_ROUNDS)]
        result = self._encrypt(values.astype(np.uint64), keys)
        outside = result >= self.n_samples
        while outside.any():
            result[outside] = self._encrypt(result[outside], keys)
            outside = result >= self.n_samples
        return result.astype(np.int64)

    def _encrypt(self, values: np.ndarray, keys: list[int]) -> np.ndarray:
        bits = np.uint64(self._half_bits)
        mask = np.uint64((1 << self._half_bits) - 1)
        left, right = values >> bits, values & mask
        for key in keys:
            left, right = right, left ^ (mix(right ^ np.uint64(key)) & mask)
        return (left << bits) | right

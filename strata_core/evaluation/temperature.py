"""Temperature scaling (Guo et al. 2017): one number by which scores are divided, fitted on data not trained on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_LOWEST, _HIGHEST = 0.05, 20.0
_GOLDEN = (5**0.5 - 1) / 2
_ROUNDS = 60


def fit_class_temperature(scores: np.ndarray, labels: np.ndarray) -> float:
    """The temperature of least cross-entropy.

    Args:
        scores: float [N, C].
        labels: int [N].
    """
    rows = np.arange(len(labels))

    def loss(temperature: float) -> float:
        scaled = scores / temperature
        largest = scaled.max(axis=1)
        totals = np.log(np.exp(scaled - largest[:, None]).sum(axis=1)) + largest
        return float((totals - scaled[rows, labels]).mean())

    return _least(loss) if len(labels) else 1.0


def fit_binary_temperature(log_odds: np.ndarray, outcomes: np.ndarray) -> float:
    """The temperature of least binary cross-entropy.

    Args:
        log_odds: float [N].
        outcomes: float [N] in [0, 1].
    """

    def loss(temperature: float) -> float:
        scaled = log_odds / temperature
        return float((np.logaddexp(0.0, scaled) - outcomes * scaled).mean())

    return _least(loss) if len(outcomes) else 1.0


def _least(loss: Callable[[float], float]) -> float:
    """Where a loss is least, by golden-section search over the temperature's logarithm."""
    low, high = np.log(_LOWEST), np.log(_HIGHEST)
    for _ in range(_ROUNDS):
        first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if loss(float(np.exp(first))) <= loss(float(np.exp(second))):
            high = second
        else:
            low = first
    return float(np.exp((low + high) / 2))

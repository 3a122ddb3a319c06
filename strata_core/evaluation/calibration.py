"""How far confidences can be trusted."""

from __future__ import annotations

import numpy as np


def expected_calibration_error(confidences: np.ndarray, correct: np.ndarray, *, bins: int = 15) -> float:
    """Mean gap between confidence and accuracy over bins of equal width, weighted by size (Guo et al. 2017).

    Args:
        confidences: float [N] in [0, 1]; a bin has its upper edge, and the first bin has 0 too.
        correct: bool [N], or the accuracy of each answer as float in [0, 1].
        bins: number of bins.

    Raises:
        ValueError: the shapes differ, there is no answer, or a confidence is outside [0, 1].
    """
    confidences, correct = _checked(confidences, correct)
    edges = np.arange(1, bins) / bins
    members = np.searchsorted(edges, confidences, side="left")
    gaps = np.bincount(members, weights=confidences - correct, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidences))


def brier_score(probabilities: np.ndarray, outcomes: np.ndarray) -> float:
    """Mean squared distance of probabilities from outcomes (Brier 1950): in [0, 1], lower is better.

    Args:
        probabilities: float [N] in [0, 1].
        outcomes: bool or float [N] in [0, 1].

    Raises:
        ValueError: the shapes differ, there is no outcome, or a probability is outside [0, 1].
    """
    probabilities, outcomes = _checked(probabilities, outcomes)
    return float(np.mean((probabilities - outcomes) ** 2))


def area_under_risk_coverage(confidences: np.ndarray, losses: np.ndarray) -> float:
    """Mean over k of the mean loss of the k most confident answers (AURC: Geifman, Uziel and El-Yaniv 2019).

    Answers of equal confidence count in every order alike: each has the mean loss of all of them.

    Args:
        confidences: float [N] in [0, 1].
        losses: float [N] in [0, 1], 1 - correct for classification.

    Raises:
        ValueError: the shapes differ, there is no answer, or a confidence is outside [0, 1].
    """
    confidences, losses = _checked(confidences, losses)
    _, group, sizes = np.unique(-confidences, return_inverse=True, return_counts=True)
    group_loss = np.bincount(group, weights=losses) / sizes
    in_order = np.repeat(group_loss, sizes)
    return float(np.mean(np.cumsum(in_order) / np.arange(1, len(in_order) + 1)))


def _checked(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(f"shapes {first.shape} and {second.shape}, two equal lengths above 0 expected")
    for values in (first, second):
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"values from {values.min()} to {values.max()}, [0, 1] expected")
    return first, second

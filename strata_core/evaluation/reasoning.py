"""What a graph reasoner's answers are worth: ranks, sets of paths, statuses, numbers, and how far it can be trusted.

Shapes: N examples.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from strata_core.corpus.graphs.example import N_STATUSES, Mode, Status
from strata_core.evaluation.calibration import (
    area_under_risk_coverage,
    brier_score,
    expected_calibration_error,
)
from strata_core.evaluation.confusion import confusion_matrix
from strata_core.evaluation.temperature import fit_binary_temperature, fit_class_temperature


@dataclass(frozen=True)
class Judged:
    """What was told of examples, and what was right. Arrays of N rows; float64 unless another type is given.

    Attributes:
        modes, hops: int64; see graph_example.Mode; steps of the longest branch.
        statuses: int64, graph_example.Status; UNKNOWN where nobody said.
        status_scores: [N, 3].
        answers: how many nodes are answers; 0 where none are asked for.
        reciprocal_ranks, hits_at_1, hits_at_3, hits_at_10: sums over the example's answers, filtered and realistic.
        has_number: bool.
        number_right: 1 where the number told is the right one.
        asked: bool, whether there is a query.
        path_f1: set-F1 of the selected paths.
        path_exact: 1 where the selected paths are the supporting ones.
        confidence: log-odds.
        twins: bool, whether the supported twin is among the examples.
        twin_right: 1 where the support score is below that of the twin.
    """

    modes: np.ndarray
    hops: np.ndarray
    statuses: np.ndarray
    status_scores: np.ndarray
    answers: np.ndarray
    reciprocal_ranks: np.ndarray
    hits_at_1: np.ndarray
    hits_at_3: np.ndarray
    hits_at_10: np.ndarray
    has_number: np.ndarray
    number_right: np.ndarray
    asked: np.ndarray
    path_f1: np.ndarray
    path_exact: np.ndarray
    confidence: np.ndarray
    twins: np.ndarray
    twin_right: np.ndarray

    def only(self, chosen: np.ndarray) -> Judged:
        """Some of the examples; bool [N]."""
        return Judged(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})


def reasoning_metrics(judged: Judged) -> dict[str, float]:
    """Metrics, each left out where no example is asked for it.

    "hits_at_1", "hits_at_3", "hits_at_10", "mrr" over answers; "path_f1", "path_exact_match" over queries;
    "status_accuracy", "status_macro_f1" over known statuses; "count_accuracy" over numbers; "twin_accuracy" over pairs
    of an example that lacks an edge and its supported twin; "selection_score", the mean of hits_at_1, path_f1,
    status_macro_f1 and count_accuracy.
    """
    metrics: dict[str, float] = {}
    n_answers = judged.answers.sum()
    if n_answers:
        for name in ("hits_at_1", "hits_at_3", "hits_at_10"):
            metrics[name] = float(getattr(judged, name).sum() / n_answers)
        metrics["mrr"] = float(judged.reciprocal_ranks.sum() / n_answers)
    if judged.asked.any():
        metrics["path_f1"] = float(judged.path_f1[judged.asked].mean())
        metrics["path_exact_match"] = float(judged.path_exact[judged.asked].mean())
    known = judged.statuses < N_STATUSES
    if known.any():
        predicted = judged.status_scores[known].argmax(axis=1)
        metrics["status_accuracy"] = float((predicted == judged.statuses[known]).mean())
        metrics["status_macro_f1"] = macro_f1(judged.statuses[known], predicted, n_classes=N_STATUSES)
    if judged.has_number.any():
        metrics["count_accuracy"] = float(judged.number_right[judged.has_number].mean())
    if judged.twins.any():
        metrics["twin_accuracy"] = float(judged.twin_right[judged.twins].mean())
    parts = [metrics[name] for name in ("hits_at_1", "path_f1", "status_macro_f1", "count_accuracy") if name in metrics]
    metrics["selection_score"] = float(np.mean(parts)) if parts else 0.0
    return metrics


def macro_f1(gold: np.ndarray, predicted: np.ndarray, *, n_classes: int) -> float:
    """Mean F1 over the classes that occur in either; int [N] each."""
    matrix = confusion_matrix(gold, predicted, n_classes=n_classes)
    both = matrix.sum(axis=0) + matrix.sum(axis=1)
    occurs = both > 0
    return float((2 * np.diag(matrix)[occurs] / both[occurs]).mean())


@dataclass(frozen=True)
class Temperatures:
    """What scores are divided by before they become probabilities."""

    status: float = 1.0
    confidence: float = 1.0


def fit_temperatures(judged: Judged) -> Temperatures:
    """The temperatures of least cross-entropy."""
    known = judged.statuses < N_STATUSES
    return Temperatures(
        status=fit_class_temperature(judged.status_scores[known], judged.statuses[known]),
        confidence=fit_binary_temperature(judged.confidence[judged.asked], judged.path_f1[judged.asked]),
    )


def calibration_metrics(judged: Judged, temperatures: Temperatures) -> dict[str, float]:
    """ "ece", "brier", "aurc" of the confidence against the set-F1 of the selection; "status_ece", "status_aurc" of the
    status's probability against its being right, "status_brier" of that of being supported."""
    metrics: dict[str, float] = {}
    if judged.asked.any():
        confidence = _sigmoid(judged.confidence[judged.asked] / temperatures.confidence)
        quality = judged.path_f1[judged.asked]
        metrics["ece"] = expected_calibration_error(confidence, quality)
        metrics["brier"] = brier_score(confidence, quality)
        metrics["aurc"] = area_under_risk_coverage(confidence, 1 - quality)
    known = judged.statuses < N_STATUSES
    if known.any():
        probabilities = _softmax(judged.status_scores[known] / temperatures.status)
        right = probabilities.argmax(axis=1) == judged.statuses[known]
        supported = judged.statuses[known] == Status.SUPPORTED
        metrics["status_ece"] = expected_calibration_error(probabilities.max(axis=1), right)
        metrics["status_brier"] = brier_score(probabilities[:, Status.SUPPORTED], supported)
        metrics["status_aurc"] = area_under_risk_coverage(probabilities.max(axis=1), ~right)
    return metrics


def breakdown(judged: Judged) -> dict[str, list[dict[str, Any]]]:
    """ "by_hops", "by_status" and "by_mode": a table each, a row a group with its metrics."""
    tables: dict[str, list[dict[str, Any]]] = {"by_hops": [], "by_status": [], "by_mode": []}
    for hops in np.unique(judged.hops):
        tables["by_hops"].append(_row({"hops": int(hops)}, judged.only(judged.hops == hops)))
    for status in Status:
        if (judged.statuses == status).any():
            tables["by_status"].append(_row({"status": status.name.lower()}, judged.only(judged.statuses == status)))
    for mode in Mode:
        if (judged.modes == mode).any():
            tables["by_mode"].append(_row({"mode": mode.name.lower()}, judged.only(judged.modes == mode)))
    return tables


def _row(name: dict[str, Any], judged: Judged) -> dict[str, Any]:
    metrics = reasoning_metrics(judged)
    for of_all in ("status_macro_f1", "selection_score"):
        metrics.pop(of_all, None)
    return {**name, "examples": len(judged.modes), **metrics}


def _sigmoid(log_odds: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * (1 + np.tanh(log_odds / 2)))


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True)).clip(0.0, 1.0)

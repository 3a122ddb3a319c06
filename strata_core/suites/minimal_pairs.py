"""Accuracy on minimal pairs: how often the good sentence is the likelier one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from strata_core.inference.causal_model import CausalModel
from strata_core.observer import SILENT, Observer
from strata_core.suites.pairs import Pair
from strata_core.suites.scoring import encode_sentence, log_probabilities
from strata_core.suites.word_counts import words_of

PAIRS_AT_ONCE = 4096
"""Pairs that are read and ordered by length together."""


@dataclass
class PairScores:
    """What one model scored, without the sentences.

    Attributes:
        names: (phenomenon, paradigm) of each pair that was scored, in order.
        by_sum: 1.0 where the good sentence has the larger summed log probability, 0.5 where both are equal, else 0.0.
        by_mean: the same of the mean over tokens.
        left_out: pairs with a word that the corpus has too rarely.
    """

    names: list[tuple[str, str]] = field(default_factory=list)
    by_sum: list[float] = field(default_factory=list)
    by_mean: list[float] = field(default_factory=list)
    left_out: int = 0

    def to_json(self) -> dict[str, Any]:
        """Accuracies over all pairs, by phenomenon and by paradigm."""
        return {
            **_accuracy(self.by_sum),
            "ties": self.by_sum.count(0.5),
            "accuracy_by_mean": _accuracy(self.by_mean)["accuracy"],
            "ties_by_mean": self.by_mean.count(0.5),
            "left_out": self.left_out,
            "phenomena": {name: _accuracy(scores) for name, scores in self.grouped(0).items()},
            "paradigms": {name: _accuracy(scores) for name, scores in self.grouped(1).items()},
        }

    def grouped(self, part: int) -> dict[str, list[float]]:
        """Scores by sum of each phenomenon (0) or paradigm (1)."""
        groups: defaultdict[str, list[float]] = defaultdict(list)
        for names, score in zip(self.names, self.by_sum, strict=True):
            groups[names[part]].append(score)
        return dict(groups)


def _accuracy(scores: Sequence[float]) -> dict[str, Any]:
    return {"accuracy": float(np.mean(scores)) if scores else None, "pairs": len(scores)}


def score_pairs(
    model: CausalModel,
    pairs: Iterable[Pair],
    *,
    counts: Counter[str] | None = None,
    min_count: int = 1,
    observer: Observer = SILENT,
) -> PairScores:
    """Scores pairs as they are read; what is kept is three numbers a pair.

    Args:
        model: with a causal pass.
        pairs: of a PairReader.
        counts: how often words occur; None leaves no pair out.
        min_count: pairs with a word that occurs less often are left out.
        observer: shown the progress.

    Raises:
        DataError: a sentence is too long for the model, or as the reader says.
    """
    scores, remaining = PairScores(), iter(pairs)
    observer.stage_started("scoring", None, "pairs")
    while some := list(islice(remaining, PAIRS_AT_ONCE)):
        kept = [pair for pair in some if counts is None or _is_known(pair, counts, min_count)]
        scores.left_out += len(some) - len(kept)
        for pair, good, bad in _scored(model, kept):
            scores.names.append((pair.phenomenon, pair.paradigm))
            scores.by_sum.append(_preference(good.sum(), bad.sum()))
            scores.by_mean.append(_preference(good.mean(), bad.mean()))
        observer.stage_advanced(len(scores.names))
    observer.stage_finished()
    return scores


def _scored(model: CausalModel, pairs: list[Pair]) -> Iterator[tuple[Pair, np.ndarray, np.ndarray]]:
    # Equal sentences are computed once: those of a pair are then equal to the last bit.
    tokens: dict[str, list[int]] = {}
    for pair in pairs:
        for sentence in (pair.good, pair.bad):
            if sentence not in tokens:
                tokens[sentence] = encode_sentence(model, sentence, pair.where)
    scored = dict(zip(tokens, log_probabilities(model, list(tokens.values())), strict=True))
    for pair in pairs:
        yield pair, scored[pair.good], scored[pair.bad]


def _preference(good: float, bad: float) -> float:
    return 0.5 if good == bad else float(good > bad)


def _is_known(pair: Pair, counts: Counter[str], min_count: int) -> bool:
    return all(counts[word] >= min_count for word in words_of(f"{pair.good} {pair.bad}"))

"""Annotated sentences batched by cost: which ones each step holds, a pure function of (seed, step).

Sentences of like length go together, so that one long sentence does not pad fifty short ones, and every batch holds
about as many words. In each epoch lengths are blurred a little before sentences are sorted and cut into batches, and
the batches come in a random order; their number is the same in all epochs, so any step can be asked for directly.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from strata_core.randomness import derive_seed
from strata_core.training.order import SampleOrder

_BLUR = 0.1
"""How far a length is raised at random before sorting, as a share of it: new neighbours for little padding."""


class SentenceBatches:
    """The batches of annotated sentences, one a step.

    Args:
        word_counts: int [sentences], words of each sentence of the split.
        usable: numbers of the sentences to train on, at least one.
        sentences_per_batch: mean over an epoch; a batch has as many words as that many sentences have on average.
        seed: the run's seed.
    """

    def __init__(self, word_counts: np.ndarray, usable: np.ndarray, *, sentences_per_batch: int, seed: int) -> None:
        self._usable = usable
        self._words = word_counts[usable].astype(np.int64)
        self._seed = seed
        total = int(self._words.sum())
        words_per_batch = max(sentences_per_batch * total // len(usable), 1)
        # No sentence counts for more than a batch, and batches are no shorter than that, so none of them is empty.
        self._cost = np.minimum(self._words, words_per_batch)
        self.n_batches = max(int(self._cost.sum()) // words_per_batch, 1)
        self._order = SampleOrder(self.n_batches, seed, "sentence batches")
        self._epoch: tuple[int, list[np.ndarray]] | None = None

    def batch(self, step: int) -> np.ndarray:
        """The numbers of the sentences of a step, int64, by about rising length."""
        epoch = step // self.n_batches
        held = self._epoch
        if held is None or held[0] != epoch:
            held = self._epoch = epoch, self._cut(np.argsort(self._blurred(epoch), kind="stable"))
        return held[1][int(self._order.samples(step, 1)[0])]

    def costliest(self) -> np.ndarray:
        """A batch of the longest sentences: what pairs of words cost grows with the length of sentences."""
        return self._cut(np.argsort(self._words, kind="stable"))[-1]

    def _blurred(self, epoch: int) -> np.ndarray:
        generator = np.random.default_rng(derive_seed(self._seed, "sentence lengths", epoch))
        return self._words * (1.0 + _BLUR * generator.random(len(self._words)))

    def _cut(self, sorted_places: np.ndarray) -> list[np.ndarray]:
        parts = _equal_parts(self._cost[sorted_places], self.n_batches)
        return [self._usable[sorted_places[part]] for part in parts]


def cut_by_words(sentences: np.ndarray, word_counts: np.ndarray, n_parts: int) -> list[np.ndarray]:
    """Consecutive parts with about equally many words; of few sentences some parts can be empty.

    Args:
        sentences: int [n], numbers of sentences.
        word_counts: int, words of each sentence of the split.
        n_parts: how many parts.
    """
    return [sentences[part] for part in _equal_parts(word_counts[sentences], n_parts)]


def _equal_parts(costs: np.ndarray, n_parts: int) -> list[slice]:
    """Slices of the costs with about equal sums: an item goes where its beginning falls."""
    before = np.cumsum(costs) - costs
    part_of = before * n_parts // max(int(costs.sum()), 1)
    bounds = np.searchsorted(part_of, np.arange(n_parts + 1))
    return [slice(int(start), int(stop)) for start, stop in pairwise(bounds)]

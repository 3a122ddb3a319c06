"""Annotated sentences batched by cost: which ones each step holds, a pure function of (seed, step).

Sentences of like length go together, so that one long sentence does not pad fifty short ones, and every batch is about
as long in all; lengths are those that the passes over sentences pad. In each epoch they are blurred a little before
sentences are sorted and cut into batches, and the batches come in a random order; their number is the same in all
epochs, so any step can be asked for directly.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from strata_core.randomness import derive_seed
from strata_core.training.order import SampleOrder

_BLUR = 0.1
"""How far a length is raised at random before sorting, as a share of it: new neighbours for little padding."""
_KEPT_EPOCHS = 2  # around the end of an epoch steps of both are asked for


class SentenceBatches:
    """The batches of annotated sentences, one a step.

    Args:
        lengths: int [sentences], what each sentence of the split is padded as, in words or tokens.
        usable: numbers of the sentences to train on, at least one.
        sentences_per_batch: mean over an epoch; a batch is as long as that many sentences are on average.
        seed: the run's seed.
    """

    def __init__(self, lengths: np.ndarray, usable: np.ndarray, *, sentences_per_batch: int, seed: int) -> None:
        self._usable = usable
        self._lengths = lengths[usable].astype(np.int64)
        self._seed = seed
        total = int(self._lengths.sum())
        self._batch_length = max(sentences_per_batch * total // len(usable), 1)
        # No sentence counts for more than a batch, and batches are no shorter than that, so none of them is empty.
        self._cost = np.minimum(self._lengths, self._batch_length)
        self.n_batches = max(int(self._cost.sum()) // self._batch_length, 1)
        self._order = SampleOrder(self.n_batches, seed, "sentence batches")
        self._epoch = lru_cache(_KEPT_EPOCHS)(self._cut_epoch)

    def batch(self, step: int) -> np.ndarray:
        """The numbers of the sentences of a step, int64, by about rising length."""
        return self._epoch(step // self.n_batches)[int(self._order.samples(step, 1)[0])]

    def costliest(self, n_parts: int = 1, words: np.ndarray | None = None) -> np.ndarray:
        """Sentences that cost at least what any part of any step's batch does, the longest of them first, int64.

        Padded, no part has more positions (rows x longest) or more pairs of them (rows x longest^2), however an
        epoch's blur orders the sentences: `_bounds` says how many rows of which length a part can have at most, and
        the longest sentence of all gets as many rows as it takes to have no less than any.

        Args:
            n_parts: how many parts `cut_by_length` makes of a batch.
            words: int [sentences of the split], where lengths are tokens and there is a pass over words too: no part
                has more pairs of words, or more positions in both passes together.
        """
        longest_P, rows_P = self._bounds(n_parts)
        own = self._lengths if words is None else words[self._usable]
        by_length = np.argsort(self._lengths, kind="stable")
        most_words_P = np.maximum.accumulate(own[by_length])[
            np.searchsorted(self._lengths[by_length], longest_P, side="right") - 1
        ]
        longest, most_words = int(self._lengths.max()), int(own.max())
        measures = (
            (longest_P, longest),
            (longest_P**2, longest**2),
            (longest_P + most_words_P, longest + most_words),
            (most_words_P**2, most_words**2),
        )
        rows = int(max(np.ceil((rows_P * size_P).max() / max(size, 1)) for size_P, size in measures))
        first, others = by_length[-1], by_length[:-1]
        wordiest_first = others[np.argsort(-own[others], kind="stable")]
        return self._usable[np.resize(np.append(first, wordiest_first), max(rows, min(2, len(own))))]

    def _bounds(self, n_parts: int) -> tuple[np.ndarray, np.ndarray]:
        """For each batch of an epoch its longest length and its most rows in a part at most: int64 [batches] each.

        Batch p holds the sentences that begin, in the blurred order, at costs from p S to (p + 1) S. A sentence of
        length l comes after all whose length times (1 + _BLUR) is below l, which bounds the longest; and before all
        whose length is above (1 + _BLUR) l. So sentences no longer than l lie within the first A(l), the cost of those
        no longer than (1 + _BLUR) l, and a part spends at most A(l) - p S on them; and on all but its last less than
        its share (an item goes where its beginning falls). Most rows come of spending as much as these limits allow
        on the shortest. The last batch ends where the sentences do: there the share bounds all of it.
        """
        lengths, spread = np.sort(self._lengths), 1.0 + _BLUR
        capped = np.minimum(lengths, self._batch_length)
        before = np.concatenate([[0], np.cumsum(capped)])
        of_batch = before[-1] / self.n_batches
        starts = np.arange(self.n_batches) * of_batch
        size_N = np.unique(lengths)
        cost_N = np.minimum(size_N, self._batch_length)
        earliest_N = before[np.searchsorted(lengths * spread, size_N)]
        limit_N = before[np.searchsorted(lengths, size_N * spread, side="right")]
        longest_P = size_N[np.searchsorted(earliest_N, starts + of_batch) - 1]
        rows_P = np.zeros(self.n_batches, dtype=np.int64)
        for place, (start, longest) in enumerate(zip(starts.tolist(), longest_P.tolist(), strict=True)):
            share = of_batch if n_parts == 1 else self._share_of_part(of_batch, longest, n_parts)
            spent_N = np.diff(np.clip(limit_N - start, 0, share), prepend=0)
            ends = n_parts == 1 and place == self.n_batches - 1
            rows_P[place] = int((spent_N / np.maximum(cost_N, 1)).sum() + 1e-6) + (not ends)
        return longest_P, np.clip(rows_P, 1, np.searchsorted(lengths, longest_P, side="right"))

    def _share_of_part(self, of_batch: float, longest: int, n_parts: int) -> float:
        """What the sentences of a part, without its last, cost less than.

        Parts are cut by whole lengths, batches by costs. Of a batch's sentences but its last at most one is longer
        than it costs: two would cost more than a batch does.
        """
        whole = of_batch + max(longest - self._batch_length, 0) + longest
        return min(of_batch, whole / n_parts)

    def _cut_epoch(self, epoch: int) -> list[np.ndarray]:
        return self._cut(np.argsort(self._blurred(epoch), kind="stable"))

    def _blurred(self, epoch: int) -> np.ndarray:
        generator = np.random.default_rng(derive_seed(self._seed, "sentence lengths", epoch))
        return self._lengths * (1.0 + _BLUR * generator.random(len(self._lengths)))

    def _cut(self, sorted_places: np.ndarray) -> list[np.ndarray]:
        parts = _equal_parts(self._cost[sorted_places], self.n_batches)
        return [self._usable[sorted_places[part]] for part in parts]


def cut_by_length(sentences: np.ndarray, lengths: np.ndarray, n_parts: int) -> list[np.ndarray]:
    """Consecutive parts of about equal length in all; of few sentences some parts can be empty.

    Args:
        sentences: int [n], numbers of sentences.
        lengths: int [sentences], of each sentence of the split.
        n_parts: how many parts.
    """
    return [sentences[part] for part in _equal_parts(lengths[sentences], n_parts)]


def _equal_parts(costs: np.ndarray, n_parts: int) -> list[slice]:
    """Slices of the costs with about equal sums: an item goes where its beginning falls."""
    before = np.cumsum(costs) - costs
    part_of = before * n_parts // max(int(costs.sum()), 1)
    bounds = np.searchsorted(part_of, np.arange(n_parts + 1))
    return [slice(int(start), int(stop)) for start, stop in pairwise(bounds)]

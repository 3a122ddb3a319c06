"""A graph reasoner judged on a split: one row of numbers for each example, whoever computed it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from strata_core.corpus.graphs.example import N_STATUSES, NUMBER_MODES, Mode, Status
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.evaluation.ranking import filtered_ranks
from strata_core.evaluation.reasoning import Judged
from strata_core.models.graphs.graph_reasoner import GraphReasoner, Selection, Walk
from strata_core.models.graphs.reasoning_batch import ReasoningBatch
from strata_core.tasks.graph_queries.losses import selection_quality

_COLUMNS = (
    "answers",
    "reciprocal_ranks",
    "hits_at_1",
    "hits_at_3",
    "hits_at_10",
    "number_right",
    "path_f1",
    "path_exact",
    "confidence",
    "support",
)
WIDTH = len(_COLUMNS) + N_STATUSES
"""Numbers told of each example."""


@torch.no_grad()
def judge_batch(model: GraphReasoner, batch: ReasoningBatch, walk: Walk, selection: Selection) -> np.ndarray:
    """What there is to know of each example of a batch, of which walk and selection are, float64 [B, WIDTH]."""
    quality_B = selection_quality(selection, batch)
    numbers_B = model.numbers(walk, batch).argmax(dim=-1)
    right_B = numbers_B == batch.numbers_B.clamp(max=model.config.largest_number)
    told = {
        "number_right": right_B & (batch.numbers_B >= 0),
        "path_f1": quality_B,
        "path_exact": quality_B >= 1,
        "confidence": model.confidence(walk, selection),
        "support": model.support(walk),
    }
    columns = {name: _host(values) for name, values in told.items()}
    columns |= _ranked_answers(_host(model.answers(walk)), batch)
    of_all = np.stack([columns[name] for name in _COLUMNS], axis=1)
    return np.concatenate([of_all, _host(model.statuses(walk))], axis=1)


def _host(values: Tensor) -> np.ndarray:
    return np.asarray(values.float().cpu().numpy(), dtype=np.float64)


def _ranked_answers(scores_M: np.ndarray, batch: ReasoningBatch) -> dict[str, np.ndarray]:
    """Ranks of the answers to questions for nodes, summed over each example's answers."""
    owners, modes = batch.node_examples_M.cpu().numpy(), batch.modes_B.cpu().numpy()
    answers, answer_examples = batch.answers_A.cpu().numpy(), batch.answer_examples_A.cpu().numpy()
    offsets = np.searchsorted(owners, np.arange(batch.n_examples + 1))
    names = ("answers", "reciprocal_ranks", "hits_at_1", "hits_at_3", "hits_at_10")
    columns = {name: np.zeros(batch.n_examples) for name in names}
    for example in np.unique(answer_examples):
        if modes[example] != Mode.ENTITY:
            continue
        start, stop = offsets[example : example + 2]
        right = answers[answer_examples == example] - start
        scores = np.broadcast_to(scores_M[start:stop], (len(right), stop - start))
        ranks = filtered_ranks(scores, right, [right] * len(right))
        columns["answers"][example] = len(right)
        columns["reciprocal_ranks"][example] = (1 / ranks).sum()
        for k in (1, 3, 10):
            columns[f"hits_at_{k}"][example] = (ranks <= k).sum()
    return columns


def judged(reader: GraphReader, examples: np.ndarray, rows: Sequence[Sequence[float]]) -> Judged:
    """Puts the rows of some examples of a split together.

    Args:
        reader: the split.
        examples: int64 [N], in rising order.
        rows: [N, WIDTH], of `judge_batch`.
    """
    table = np.asarray(rows, dtype=np.float64).reshape(len(examples), WIDTH)
    columns = {name: table[:, number] for number, name in enumerate(_COLUMNS)}
    support = columns.pop("support")
    arrays = reader.arrays
    statuses = arrays["statuses"][examples].astype(np.int64)
    twins = arrays["twins"][examples]
    place = np.searchsorted(examples, twins).clip(max=max(len(examples) - 1, 0))
    has_twin = (twins >= 0) & (statuses != Status.SUPPORTED)
    if len(examples):
        has_twin &= examples[place] == twins
    modes = arrays["modes"][examples].astype(np.int64)
    return Judged(
        modes=modes,
        hops=reader.hop_counts[examples],
        statuses=statuses,
        status_scores=table[:, len(_COLUMNS) :],
        has_number=np.isin(modes, NUMBER_MODES) & (arrays["numbers"][examples] >= 0),
        asked=np.diff(arrays["branch_offsets"])[examples] > 0,
        twins=has_twin,
        twin_right=(support < support[place]).astype(np.float64) * has_twin,
        **columns,
    )

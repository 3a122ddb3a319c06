"""Annotated sentences as the tensors that both passes and their losses read, and how much there is to learn of them.

Shapes: B sentences, L tokens, W words, P predicates of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strata_core.corpus.treebanks.gold_structure import gold_chart_items, gold_predicates, has_whole_tree
from strata_core.corpus.treebanks.labels import NO_LABEL
from strata_core.corpus.treebanks.role_edit_examples import last_tokens
from strata_core.corpus.treebanks.role_swap import CORE_ROLES
from strata_core.corpus.treebanks.structure_reading import SentenceArrays, StructureReader
from strata_core.evaluation.word_labels import LOSS_OF_KIND, gold_word_labels
from strata_core.models.structure_heads import NONE_ROLE
from strata_core.models.word_features import word_features
from strata_core.models.word_states import Words, pack_words
from strata_core.objectives.next_token import IGNORED
from strata_core.training.task import Batch


@dataclass(frozen=True)
class SentenceNeeds:
    """What has to be read of a sentence.

    Attributes:
        causal: whether there is a causal pass over its tokens.
        full: whether there is a full pass over its words.
        chart_scheme: of the chart items to learn; None for none.
        feature_buckets: of the word features.
        causal_heads: whether the heads read the causal pass.
        word_labels: the kinds of labels (labels.WORD_LABEL_KINDS) to learn.
    """

    causal: bool
    full: bool
    chart_scheme: str | None
    feature_buckets: int
    causal_heads: bool
    word_labels: tuple[str, ...] = ()


def causal_tensors(sentences: Sequence[SentenceArrays], *, learn: bool) -> Batch:
    """ "sentence_tokens" and "sentence_labels", int64 [B, L], and "last_token", int64 [B, W], where each word ends.

    Args:
        sentences: at least one.
        learn: whether there is anything to learn of them; without it all labels are IGNORED.
    """
    length = max(len(sentence.tokens) for sentence in sentences)
    tokens = np.zeros((len(sentences), length), dtype=np.int64)
    labels = np.full((len(sentences), length), IGNORED, dtype=np.int64)
    last = np.zeros((len(sentences), _most_words(sentences)), dtype=np.int64)
    for row, sentence in enumerate(sentences):
        count = len(sentence.tokens)
        tokens[row, :count] = sentence.tokens
        if learn:
            labels[row, : count - 1] = sentence.tokens[1:]
        last[row, : len(sentence.heads)] = last_tokens(sentence.token_spans)
    return _tensors({"sentence_tokens": tokens, "sentence_labels": labels, "last_token": last})


def word_tensors(sentences: Sequence[SentenceArrays], forms: Sequence[Sequence[str]], buckets: int) -> Batch:
    """What `words_of` makes Words of again, together with "real".

    Args:
        sentences: at least one.
        forms: the words of each.
        buckets: of the word features.
    """
    words = pack_words(
        [sentence.tokens for sentence in sentences],
        [sentence.token_spans for sentence in sentences],
        [np.array([_features(form, buckets) for form in sentence]) for sentence in forms],
    )
    return {
        "word_tokens": words.tokens_T,
        "word_offsets": words.offsets_N,
        "word_features": words.features_BWK,
    }


def words_of(batch: Batch) -> Words:
    """The sentences of a batch as the full pass takes them."""
    return Words(batch["word_tokens"], batch["word_offsets"], batch["word_features"], batch["real"])


def label_tensors(
    sentences: Sequence[SentenceArrays],
    chart_scheme: str | None,
    *,
    word_labels: Sequence[str] = (),
    learn: bool = True,
) -> Batch:
    """What the heads are to say, int64, NO_LABEL at padding and where nothing is annotated; "real", bool [B, W].

    "heads", "relations", "node_types", "predicate_labels", those of `word_labels` by their names and, under a scheme,
    "chart_items": [B, W]; "predicates" [P, 2], row and word of each, from 0; "roles" [P, W], classes of the role head.

    Args:
        sentences: at least one.
        chart_scheme: a name of CHART_SCHEMES, or None.
        word_labels: kinds of labels (labels.WORD_LABEL_KINDS).
        learn: without it everything is NO_LABEL and there are no predicates.
    """
    shape = len(sentences), _most_words(sentences)
    names = ["heads", "relations", "node_types", "predicate_labels", *word_labels]
    names += ["chart_items"] if chart_scheme else []
    labels = {name: np.full(shape, NO_LABEL, dtype=np.int64) for name in names}
    predicates: list[tuple[int, int]] = []
    roles: list[np.ndarray] = []
    for row, sentence in enumerate(sentences if learn else ()):
        words = slice(len(sentence.heads))
        labels["heads"][row, words] = sentence.heads
        labels["relations"][row, words] = np.where(sentence.heads >= 0, sentence.relations, NO_LABEL)
        labels["node_types"][row, words] = sentence.upos
        for kind in word_labels:
            labels[kind][row, words] = gold_word_labels(sentence.word_labels, kind, len(sentence.heads))
        if chart_scheme:
            labels["chart_items"][row, words] = gold_chart_items(sentence, chart_scheme)
        if sentence.has_roles:
            found = gold_predicates(sentence) - 1
            labels["predicate_labels"][row, words] = 0
            labels["predicate_labels"][row, found] = 1
            predicates += [(row, word) for word in found.tolist()]
            cells = role_cells(sentence)
            padding = ((0, 0), (0, shape[1] - cells.shape[1]))
            roles.append(np.pad(cells, padding, constant_values=NO_LABEL))
    cells = np.concatenate([np.zeros((0, shape[1]), dtype=np.int64), *roles])
    lengths = np.array([len(sentence.heads) for sentence in sentences])
    real = np.arange(shape[1])[None, :] < lengths[:, None]
    pairs = np.array(predicates, dtype=np.int64).reshape(-1, 2)
    return _tensors({**labels, "predicates": pairs, "roles": cells, "real": real})


def role_cells(sentence: SentenceArrays) -> np.ndarray:
    """The class of every (predicate, word) pair, int64 [predicates, W]; of a pair's several roles the last counts."""
    words = gold_predicates(sentence)
    cells = np.full((len(words), len(sentence.heads)), NONE_ROLE, dtype=np.int64)
    rows = np.searchsorted(words, sentence.arguments[:, 0])
    cells[rows, sentence.arguments[:, 1] - 1] = sentence.arguments[:, 2] + 1
    return cells


def label_counts(sentence: SentenceArrays, *, none_weight: float, core_roles: Sequence[int]) -> dict[str, float]:
    """For each loss over annotated sentences the number of things it sums over in one of them.

    Args:
        sentence: as it is on disk.
        none_weight: what a (predicate, word) pair without a role counts for.
        core_roles: classes of the role head.
    """
    words, headed = len(sentence.heads), sentence.heads >= 0
    counts = {
        "lm": max(len(sentence.tokens) - 1, 0),
        "ud_arc": int(headed.sum()),
        "ud_relation": int((headed & (sentence.relations >= 0)).sum()),
        "node_type": int((sentence.upos >= 0).sum()),
        "chart_type": words if has_whole_tree(sentence) else 0,
        "srl_predicate": 0,
        "srl_role": 0.0,
        "srl_core_role": 0,
    }
    for kind, loss in LOSS_OF_KIND.items():
        counts[loss] = int((gold_word_labels(sentence.word_labels, kind, words) >= 0).sum())
    if sentence.has_roles:
        cells = role_cells(sentence)
        n_roles = int((cells != NONE_ROLE).sum())
        counts["srl_predicate"] = words
        counts["srl_role"] = n_roles + none_weight * (cells.size - n_roles)
        counts["srl_core_role"] = int(np.isin(cells, core_roles).sum())
    return counts


def core_role_classes(reader: StructureReader) -> tuple[int, ...]:
    """The classes of the role head that stand for ARG0 and ARG1; fewer where a corpus lacks one."""
    return tuple(number + 1 for number, name in enumerate(reader.labels.names("role")) if name in CORE_ROLES)


def _most_words(sentences: Sequence[SentenceArrays]) -> int:
    return max(len(sentence.heads) for sentence in sentences)


@lru_cache(maxsize=1 << 16)
def _features(form: str, buckets: int) -> tuple[int, ...]:
    return word_features(form, buckets)


def _tensors(arrays: dict[str, Any]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}

"""The annotated sentences of a run: which there are, what each step reads of them, and how much there is to learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from strata_core.corpus.reading import Corpus
from strata_core.corpus.treebanks.structure_reading import StructureReader
from strata_core.errors import RecipeError
from strata_core.evaluation.word_labels import LOSS_OF_KIND
from strata_core.recipes.lm import LMRecipe
from strata_core.tasks.sentence_structure.annotation import annotation_of, usable_sentences
from strata_core.tasks.sentence_structure.losses import WORD_LOSSES
from strata_core.tasks.sentence_structure.sentence_batches import SentenceBatches, cut_by_length
from strata_core.tasks.sentence_structure.sentence_graphs import SentenceGraphs
from strata_core.tasks.sentence_structure.sentence_tensors import (
    SentenceNeeds,
    causal_tensors,
    core_role_classes,
    label_counts,
    label_tensors,
    word_tensors,
)
from strata_core.training.task import Batch


class SentencePart(NamedTuple):
    """The sentences of one micro-batch.

    Attributes:
        numbers: int64, at least one.
        learn: False for a sentence that stands in, with nothing to learn of it, where a step has fewer sentences than
            micro-batches: so each forward pass has the same parts.
    """

    numbers: np.ndarray
    learn: bool


class AnnotatedSentences:
    """Batches of the training split, and sentences of any split as tensors.

    Args:
        recipe: one with batch.sentences above 0.
        corpus: where they lie.
        loss_weights: the weight of each active loss.

    Raises:
        RecipeError: the corpus has no annotated sentences.
    """

    def __init__(self, recipe: LMRecipe, corpus: Corpus, loss_weights: Mapping[str, float]) -> None:
        batch = recipe.batch
        if corpus.info.structure is None:
            raise RecipeError(
                f"batch.sentences is {batch.sentences}, but {corpus.path} is a corpus of kind {corpus.info.kind!r} and "
                "has 0 annotated sentences",
                hint="prepare one from CoNLL-U files, or set batch.sentences and the weights of structure to 0",
            )
        self.train = corpus.structure("train")
        self.usable = usable_sentences(self.train, batch.max_sentence_len)
        self.core_roles = core_role_classes(self.train)
        self.needs = sentence_needs(recipe, loss_weights)
        self.graphs = SentenceGraphs(recipe)
        self._recipe = recipe
        self._corpus = corpus
        self._loss_weights = loss_weights
        self._lengths = padded_lengths(self.train, causal=self.needs.causal)
        self._batches = SentenceBatches(
            self._lengths,
            self.usable if len(self.usable) else np.zeros(1, dtype=np.int64),
            sentences_per_batch=batch.sentences,
            seed=recipe.run.seed,
        )

    def check(self) -> None:
        """Refuses sentences that cannot fill a step or an evaluation, or lack what is to be learned.

        Raises:
            RecipeError: with the numbers.
        """
        batch, place = self._recipe.batch, self._corpus.path
        if len(self.usable) < batch.sentences:
            raise RecipeError(
                f"the training split of {place} has {len(self.train)} annotated sentences, {len(self.usable)} of them "
                f"not longer than batch.max_sentence_len {batch.max_sentence_len} tokens; one step takes "
                f"batch.sentences {batch.sentences}",
                hint="use more sentences, a smaller batch.sentences, or a larger batch.max_sentence_len",
            )
        for loss, (what, how_much, of_what) in annotation_of(self.train, self.usable).items():
            if loss in self._loss_weights and how_much() == 0:
                raise RecipeError(
                    f"{loss} has weight {self._loss_weights[loss]:g}, but 0 of the {of_what} in the training split of "
                    f"{place} have {what}",
                    hint='set that weight to 0, set objective.unannotated = "leave_out" to do without what is not '
                    "annotated, or prepare the corpus from files that are annotated so (--roles takes predicates and "
                    "roles)",
                )
        if self._recipe.evaluation.every and len(self._corpus.structure("val")) == 0:
            raise RecipeError(
                f"evaluation.every is {self._recipe.evaluation.every}, but the validation split of {place} has 0 "
                "annotated sentences",
                hint="prepare the corpus with a larger --val-fraction, or set evaluation.every = 0",
            )

    def batch(self, step: int) -> np.ndarray:
        """The numbers of a step's sentences, int64."""
        return self._batches.batch(step)

    def costliest(self, n_parts: int) -> np.ndarray:
        """The numbers of sentences that cost at least what any micro-batch of a step in `n_parts` does, int64."""
        return self._batches.costliest(n_parts, self.train.word_counts)

    def parts(self, numbers: np.ndarray, n_parts: int) -> list[SentencePart]:
        """A step's sentences in micro-batches of about equal length."""
        pieces = cut_by_length(numbers, self._lengths, n_parts)
        return [SentencePart(piece, True) if len(piece) else SentencePart(numbers[:1], False) for piece in pieces]

    def counts(self, numbers: np.ndarray) -> dict[str, float]:
        """For every loss over sentences the number of things it is a sum over; "tokens": their subwords."""
        none_weight = self._recipe.objective.srl.none_weight
        total: dict[str, float] = {}
        for number in numbers.tolist():
            sentence = self.train.arrays(number)
            found = label_counts(sentence, none_weight=none_weight, core_roles=self.core_roles)
            found["graph_object_aux"] = self.graphs.count(sentence)
            total = {name: total.get(name, 0) + count for name, count in found.items()}
        return total

    def read(self, reader: StructureReader, part: SentencePart, step: int | None = None) -> Batch:
        """Sentences of a split as `sentence_tensors` makes them, as far as the recipe needs them, and their graphs.

        Args:
            reader: of the split.
            part: which sentences.
            step: the optimizer step, from 0, which tells how strongly graphs are read; None in evaluation.
        """
        sentences = [reader.arrays(number) for number in part.numbers.tolist()]
        needs = self.needs
        batch = label_tensors(sentences, needs.chart_scheme, word_labels=needs.word_labels, learn=part.learn)
        batch |= self.graphs.tensors(sentences, part.numbers.tolist(), step=step, learn=part.learn)
        if self.needs.causal:
            batch |= causal_tensors(sentences, learn=part.learn)
        if self.needs.full:
            forms = [reader.forms(number) for number in part.numbers.tolist()]
            batch |= word_tensors(sentences, forms, self.needs.feature_buckets)
        return batch

    def fact(self) -> str:
        """What a person wants to know of them before training starts."""
        total, unit = len(self.train), "tokens" if self.needs.causal else "words"
        return (
            f"{len(self.usable):,} of {total:,} sentences in {self._batches.n_batches:,} batches of about equally many "
            f"{unit}; {total - len(self.usable):,} left out, longer than {self._recipe.batch.max_sentence_len} tokens"
        )


def sentence_needs(recipe: LMRecipe, loss_weights: Mapping[str, float]) -> SentenceNeeds:
    """Which passes a recipe's losses take, and what these read."""
    chart, scheme = "chart_type" in loss_weights, recipe.objective.chart.scheme
    causal_chart = chart and scheme == "reduce-count"
    causal_heads = recipe.model.heads.reads == "causal"
    words = bool(WORD_LOSSES & loss_weights.keys()) or (chart and not causal_chart)
    return SentenceNeeds(
        causal="lm" in loss_weights or causal_chart or (words and causal_heads),
        full=words and not causal_heads,
        chart_scheme=scheme if chart else None,
        feature_buckets=recipe.model.word_features.buckets,
        causal_heads=causal_heads,
        word_labels=tuple(kind for kind, loss in LOSS_OF_KIND.items() if loss in loss_weights),
    )


def padded_lengths(reader: StructureReader, *, causal: bool) -> np.ndarray:
    """What each sentence of a split is padded as, int64 [sentences]: its words, or its tokens where they are more.

    Args:
        reader: of the split.
        causal: whether there is a causal pass, which reads tokens.
    """
    return np.maximum(reader.token_counts, reader.word_counts) if causal else reader.word_counts

"""The objective of segmentation in a run: which windows a step reads, their loss, and how well texts are cut.

Shapes: B windows, N characters, F features, C marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strata_core.corpus.reading import Corpus
from strata_core.errors import RecipeError
from strata_core.evaluation.segmentation_scores import SegmentationCounts
from strata_core.models.segmenter import CharacterSegmenter, SegmenterConfig
from strata_core.objectives.structure import class_loss
from strata_core.recipes.lm import LMRecipe
from strata_core.tasks.sentence_structure.segmentation.evaluation import count_texts
from strata_core.tasks.sentence_structure.segmentation.multiword_tokens import (
    MultiwordSplitter,
    count_forms,
    known_multiword_tokens,
)
from strata_core.tasks.sentence_structure.segmentation.segmenter import segmenter_of
from strata_core.tasks.sentence_structure.segmentation.training_windows import SegmentationStream
from strata_core.tasks.sentence_structure.segmentation.treebank_texts import SegmentedText, split_texts
from strata_core.training.task import Batch, EvaluationContext

LOSS = "segmentation"
"""The name of the loss."""


class SegmentationObjective:
    """A run's objective over raw texts; it holds nothing where the recipe gives it no weight.

    Args:
        recipe: the run's.
        corpus: whose training split is spelled again.

    Attributes:
        loss_weights: that of LOSS; empty where it is 0.
        shape: of the model's segmenter; None where it has none.
    """

    def __init__(self, recipe: LMRecipe, corpus: Corpus) -> None:
        weight = recipe.objective.segmentation
        self.loss_weights: Mapping[str, float] = {LOSS: weight} if weight else {}
        self.shape = SegmenterConfig(**recipe.model.segmenter.model_dump()) if weight else None
        self._recipe = recipe
        self._corpus = corpus
        self._per_step = recipe.batch.segments if weight else 0

    def check(self) -> None:
        """Refuses a corpus without sentences to learn from.

        Raises:
            RecipeError: with the numbers.
        """
        structure = self._corpus.info.structure
        if self.loss_weights and (structure is None or not len(self._corpus.structure("train"))):
            raise RecipeError(
                f"{LOSS} has weight {self.loss_weights[LOSS]:g}, but {self._corpus.path} has 0 annotated training "
                "sentences",
                hint="prepare the corpus from CoNLL-U files, or set objective.segmentation to 0",
            )

    @cached_property
    def _learned_from(self) -> tuple[SegmentationStream, dict[str, Any]]:
        """The training split as windows, and what `config` says of it; its texts themselves are let go."""
        forms: Counter[tuple[str, tuple[str, ...]]] = Counter()

        def texts() -> Iterator[SegmentedText]:
            for text in split_texts(self._corpus.structure("train")):
                for sentence in text.sentences:
                    forms.update(count_forms(sentence, text.text))
                yield text

        stream = SegmentationStream(texts(), self._recipe.run.seed, self._recipe.batch.segment_len)
        return stream, {
            "multiword_tokens": MultiwordSplitter(known_multiword_tokens(forms)).to_list(),
            "spaces_in_words": any(any(map(str.isspace, form)) for form, _ in forms),
        }

    def plan(self, step: int) -> np.ndarray:
        """The positions of the step's windows in the order of the global batch, int64 [batch.segments]."""
        return np.arange(step * self._per_step, (step + 1) * self._per_step, dtype=np.int64)

    def counts(self, positions: np.ndarray) -> dict[str, int]:
        """How many characters the loss is a sum over."""
        return {name: len(positions) * self._recipe.batch.segment_len for name in self.loss_weights}

    def fetch(self, positions: np.ndarray) -> Batch:
        """The features int32 [B, N, F] and marks int64 [B, N] of windows; nothing where there is no objective."""
        if self.shape is None:
            return {}
        stream, _ = self._learned_from
        windows = [stream.window(position, self.shape.buckets) for position in positions.tolist()]
        features_BNF, marks_BN = (np.stack(values) for values in zip(*windows, strict=True))
        return {
            "segment_features": torch.from_numpy(features_BNF),
            "segment_marks": torch.from_numpy(marks_BN.astype(np.int64)),
        }

    def loss_sums(self, model: CharacterSegmenter | None, batch: Batch) -> dict[str, Tensor]:
        """The sum of -log probability of each character's mark over the windows, a float32 scalar."""
        if model is None or self.shape is None:
            return {}
        features_BNF, marks_BN = batch["segment_features"], batch["segment_marks"]
        real_BN = torch.ones(marks_BN.shape, dtype=torch.bool, device=marks_BN.device)
        return {LOSS: class_loss(model(features_BNF, real_BN), marks_BN)}

    def evaluate(self, model: CharacterSegmenter | None, split: str, context: EvaluationContext) -> dict[str, float]:
        """`SegmentationCounts.metrics` on the raw texts of a split; nothing where there is no objective.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        if model is None or self.shape is None or self._corpus.info.structure is None:
            return {}
        texts = list(split_texts(self._corpus.structure(split)))
        counts = count_texts(segmenter_of(model, self.config(), "the recipe"), texts, context)
        return SegmentationCounts.from_list(counts).metrics()

    def config(self) -> dict[str, Any] | None:
        """What config.json holds for cutting texts: the multiword tokens of the treebank, and whether words hold white
        space; None where there is no objective."""
        return self._learned_from[1] if self.loss_weights else None

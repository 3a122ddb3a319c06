"""The task of training a language model on the token windows of a text corpus."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strata_core.corpus.reading import Corpus, TokenSplit
from strata_core.errors import RecipeError
from strata_core.models import LanguageModel, TransformerConfig, initialise
from strata_core.models.attention import AttentionPlan, document_ids, plan_attention
from strata_core.models.structured_language_model import PassResult, StructuredLanguageModel
from strata_core.models.transformer import CAUSAL
from strata_core.objectives.next_token import IGNORED, next_token_loss, next_token_nats
from strata_core.recipes.lm import LMRecipe
from strata_core.training.order import SampleOrder
from strata_core.training.task import Batch, EvaluationContext, StepPlan

_SHAPE_SETTINGS = tuple(field.name for field in dataclasses.fields(TransformerConfig) if field.name != "vocab_size")


def output_weight(model: nn.Module) -> Tensor:
    """What makes next-token scores of the states of either language model, float [V, D]."""
    assert isinstance(model, LanguageModel | StructuredLanguageModel)
    return model.output_weight


class LanguageModelTask:
    """Next-token prediction.

    A training sample is a window of seq_len inputs; windows follow each other without overlap, and what is left at the
    end of the split, less than a window, is not trained on. An evaluation covers every token of the split.
    """

    kind = "lm"
    rate_factors: Mapping[str, float] = {}
    shapes_vary = False
    metric_directions: Mapping[str, str] = {"loss": "min", "bits_per_byte": "min"}

    def __init__(self, recipe: LMRecipe, corpus: Corpus) -> None:
        """Takes the corpus as it is; `check` tells whether there is enough of it.

        Raises:
            RecipeError: the recipe was written for another vocabulary.
        """
        if recipe.model.vocab_size not in (None, corpus.vocab_size):
            raise RecipeError(
                f"model.vocab_size is {recipe.model.vocab_size}, the corpus {corpus.path} has {corpus.vocab_size}",
                hint="leave model.vocab_size out: the corpus decides",
            )
        self.loss_weights: Mapping[str, float] = {"lm": recipe.objective.lm}
        self._recipe = recipe
        self._corpus = corpus
        self._train = corpus.split("train")
        self._seq_len = recipe.batch.seq_len
        self.n_windows = max(self._train.n_tokens - 1, 0) // self._seq_len
        self._order = SampleOrder(max(self.n_windows, 1), recipe.run.seed)
        self.shape = TransformerConfig(
            vocab_size=corpus.vocab_size,
            **{name: getattr(recipe.model, name) for name in _SHAPE_SETTINGS},
        )

    def check(self) -> None:
        """Refuses data that cannot fill a step or an evaluation.

        Raises:
            RecipeError: fewer windows than one step takes, or no validation split where one is needed.
        """
        recipe, place = self._recipe, self._corpus.path
        if self.n_windows < recipe.batch.batch_size:
            raise RecipeError(
                f"the training split of {place} has {self._train.n_tokens:,} tokens, which is {self.n_windows} windows "
                f"of batch.seq_len {self._seq_len}; one step takes batch.batch_size {recipe.batch.batch_size}",
                hint="use more text, or a smaller batch.batch_size or batch.seq_len",
            )
        if recipe.evaluation.every and self._corpus.split("val").n_tokens < 2:
            raise RecipeError(
                f"evaluation.every is {recipe.evaluation.every}, but {place} has no validation split",
                hint="prepare the corpus with a larger --val-fraction, or set evaluation.every = 0",
            )

    def build_model(self) -> LanguageModel:
        """The model with its first weights, on the default device."""
        model = LanguageModel(self.shape)
        model.transformer.recompute = self._recipe.memory.recompute == "blocks"
        initialise(model, self._recipe.run.seed)
        return model

    def plan(self, step: int) -> StepPlan:
        """Windows at the step's positions in the order, cut into micro-batches."""
        size = self._recipe.batch.batch_size
        return self._plan_of(self._order.samples(step * size, size))

    def worst_step(self) -> StepPlan:
        """Any step: all windows are equally long."""
        return self.plan(0)

    def _plan_of(self, windows: np.ndarray) -> StepPlan:
        micro = self._recipe.batch.micro_batch_size
        tokens = len(windows) * self._seq_len
        return StepPlan(
            micro_batches=[windows[start : start + micro] for start in range(0, len(windows), micro)],
            counts={"lm": tokens},
            samples=len(windows),
            tokens=tokens,
        )

    def fetch(self, micro_batch: np.ndarray) -> Batch:
        """ "tokens" and "labels", int64 [micro_batch_size, seq_len]; the label of a token is the next one."""
        return self._read(self._train, micro_batch)

    def _read(self, split: TokenSplit, windows: np.ndarray) -> Batch:
        length = self._seq_len
        tokens = np.zeros((len(windows), length), dtype=np.int64)
        labels = np.full((len(windows), length), IGNORED, dtype=np.int64)
        for row, window in enumerate(windows):
            start = int(window) * length
            piece = split.tokens(start, min(start + length + 1, split.n_tokens))
            tokens[row, : len(piece) - 1] = piece[:-1]
            labels[row, : len(piece) - 1] = piece[1:]
        return {"tokens": torch.from_numpy(tokens), "labels": torch.from_numpy(labels)}

    def loss_sums(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """ "lm": nats summed over the labels."""
        states = self._states(model, batch["tokens"])
        weight = output_weight(model)
        return {"lm": next_token_loss(states.flatten(0, 1), weight, batch["labels"].flatten())}

    def _states(self, model: nn.Module, tokens: Tensor) -> Tensor:
        result = model(tokens, attention=self._attention(tokens))
        return result.states_BLD if isinstance(result, PassResult) else result

    def _attention(self, tokens: Tensor) -> AttentionPlan:
        if not self._recipe.batch.mask_documents:
            return CAUSAL
        return plan_attention(causal=True, document_BL=document_ids(tokens, self._corpus.end_of_text_id))

    def evaluate(self, model: nn.Module, context: EvaluationContext) -> dict[str, float]:
        """ "loss" in nats per token, "perplexity" and "bits_per_byte" on the validation split.

        Every token but the first is predicted, each window from its own start. The end of a document is a token that
        codes no byte. With evaluation.batches set only the first batches are read, and bits per byte assume the
        split's mean bytes per token.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        metrics = self._measure(model, self._corpus.split("val"), context, limit=self._recipe.evaluation.batches)
        return {name: metrics[name] for name in ("loss", "perplexity", "bits_per_byte")}

    def report(self, model: nn.Module, split: str, context: EvaluationContext) -> dict[str, Any]:
        """As `evaluate`, on the whole of any split; "tokens" are those predicted, "bytes" those of its documents.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        tokens = self._corpus.split(split)
        measured = self._measure(model, tokens, context, limit=0)
        return {**measured, "bytes": tokens.n_bytes, "documents": tokens.n_documents}

    def _measure(
        self, model: nn.Module, split: TokenSplit, context: EvaluationContext, *, limit: int
    ) -> dict[str, float]:
        """The metrics of the first `limit` batches, 0 for all, and how many "tokens" are predicted; NaN without any."""
        if split.n_tokens < 2:
            return dict.fromkeys(("loss", "perplexity", "bits_per_byte"), math.nan) | {"tokens": 0}
        batches = list(self._evaluation_windows(split, limit))
        nats = context.zeros(len(batches))
        for index in context.my_share(len(batches)):
            nats[index] = self._batch_nats(model, self._read(split, batches[index]), context)
        tokens = min(split.n_tokens - 1, sum(len(windows) for windows in batches) * self._seq_len)
        loss = sum(context.ranks.sum(nats).tolist()) / tokens
        return {
            "loss": loss,
            "perplexity": math.exp(loss) if loss < 700 else math.inf,
            "bits_per_byte": loss / math.log(2) * split.n_tokens / split.n_bytes,
            "tokens": tokens,
        }

    def _evaluation_windows(self, split: TokenSplit, limit: int) -> Iterator[np.ndarray]:
        size = self._recipe.batch.micro_batch_size
        windows = np.arange(math.ceil((split.n_tokens - 1) / self._seq_len))
        if limit:
            windows = windows[: limit * size]
        for start in range(0, len(windows), size):
            yield windows[start : start + size]

    def _batch_nats(self, model: nn.Module, batch: Batch, context: EvaluationContext) -> Tensor:
        tokens, labels = (batch[name].to(context.device) for name in ("tokens", "labels"))
        with context.autocast():
            states = self._states(model, tokens)
            nats = next_token_nats(states.flatten(0, 1), output_weight(model), labels.flatten())
        return nats.double().sum() if context.device.type != "mps" else nats.sum()

    def config(self) -> dict[str, Any]:
        """The model's shape and the token that ends a document."""
        return {"kind": self.kind, "model": self.shape.to_dict(), "end_of_text_id": self._corpus.end_of_text_id}

    def facts(self) -> dict[str, Any]:
        """Windows and tokens of the splits."""
        return {
            "train": f"{self.n_windows:,} windows of {self._seq_len} tokens",
            "validation": f"{self._corpus.split('val').n_tokens:,} tokens",
        }

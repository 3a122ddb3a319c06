"""A trained model that can say what comes next: the weights of its causal pass, and its tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from strata_core.corpus.text.tokenizer import TextTokenizer
from strata_core.inference.language_model import load_language_model
from strata_core.models.language_model import LanguageModel
from strata_core.models.structured_language_model import StructuredLanguageModel
from strata_core.models.transformer import Transformer
from strata_core.observer import SILENT, Observer
from strata_core.training.distributed import choose_device
from strata_core.training.trained import BEST_OR_LATEST


@dataclass(frozen=True)
class CausalModel:
    """A language model, with or without structure, in float32 and set to evaluation.

    Attributes:
        name: how the user called it.
        module: the model.
        tokenizer: its own.
        device: where it is.
    """

    name: str
    module: LanguageModel | StructuredLanguageModel
    tokenizer: TextTokenizer
    device: torch.device

    @property
    def transformer(self) -> Transformer:
        """The blocks of the causal pass."""
        return self.module.transformer

    @property
    def longest(self) -> int:
        """Positions of its context."""
        return self.transformer.config.max_seq_len

    @property
    def has_memory(self) -> bool:
        """Whether the causal pass reads a predicate memory between its blocks."""
        return isinstance(self.module, StructuredLanguageModel) and self.module.predicate_memory is not None

    def states(self, tokens_BL: Tensor) -> Tensor:
        """Normalised states of the causal pass, float [B, L, D], of int64 tokens on the model's device."""
        result = self.module(tokens_BL)
        return result if isinstance(result, Tensor) else result.states_BLD

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; those of an empty one are the end of the text before it."""
        return self.tokenizer.tokenizer.encode(text, add_special_tokens=False).ids or [self.tokenizer.end_of_text_id]


def open_causal_model(
    path: Path, *, choose: str = BEST_OR_LATEST, device: str = "auto", observer: Observer = SILENT
) -> CausalModel:
    """Finds, verifies and loads a model that has a causal pass.

    Args:
        path: a run, a checkpoint, or a folder of a Llama.
        choose: which checkpoint of a run; see `find_trained`.
        device: "auto", "cpu", "cuda" or "mps".
        observer: told which checkpoint it is.

    Raises:
        UsageError, VerificationError, DataError: as `load_language_model`; or there is no such device.
    """
    place = choose_device(device, 0)
    module, tokenizer = load_language_model(path, choose=choose, device=place, observer=observer)
    return CausalModel(str(path), module, tokenizer, place)

"""What goes out of a trained model: its causal pass, which is a Llama, and the tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from strata_core.corpus.text.tokenizer import TextTokenizer, check_tokenizer
from strata_core.errors import DataError, UsageError
from strata_core.manifest import Parent
from strata_core.models.llama_names import llama_name, llama_shapes
from strata_core.models.structured_language_model import StructuredConfig
from strata_core.models.transformer import TransformerConfig
from strata_core.observer import SILENT, Observer
from strata_core.training.llama_folder import is_llama_folder, open_llama_folder
from strata_core.training.trained import BEST_OR_LATEST, Trained, find_trained


@dataclass(frozen=True)
class CausalPart:
    """A language model on its way out.

    Attributes:
        shape: of its transformer.
        tensors: by LlamaForCausalLM's names, on the CPU, as stored.
        tokenizer: its own.
        parent: what it is taken from.
        left_behind: parts of the model that do not go along, by name.
        trained: the checkpoint; None where a folder of a Llama is converted.
    """

    shape: TransformerConfig
    tensors: dict[str, Tensor]
    tokenizer: TextTokenizer
    parent: Parent
    left_behind: tuple[str, ...]
    trained: Trained | None

    @property
    def end_of_text(self) -> str:
        """The token that ends a document, and that stands before the first."""
        token = self.tokenizer.tokenizer.id_to_token(self.tokenizer.end_of_text_id)
        assert token is not None
        return token


def open_causal_part(path: Path, *, choose: str = BEST_OR_LATEST, observer: Observer = SILENT) -> CausalPart:
    """Finds and verifies the model at a path, and takes out what has a counterpart elsewhere.

    Args:
        path: a run, a checkpoint, or a folder of a Llama.
        choose: which checkpoint of a run; see `find_trained`.
        observer: told which checkpoint it is.

    Raises:
        UsageError: nothing is there, or a model whose causal pass is not a Llama's.
        VerificationError, DataError: what is there is unsafe or damaged, or has no tokenizer.
    """
    if is_llama_folder(path):
        folder = open_llama_folder(path)
        tensors = {str(llama_name(name)): tensor for name, tensor in folder.tensors(dtype=None).items()}
        return CausalPart(folder.shape, tensors, folder.text_tokenizer(), folder.parent(), (), None)
    trained = find_trained(path, choose=choose, observer=observer)
    checkpoint = trained.checkpoint
    shape = _causal_shape(trained)
    if checkpoint.tokenizer is None:
        raise DataError(f"{checkpoint.path} has no tokenizer.json, so its tokens cannot be told as text")
    tokenizer = check_tokenizer(checkpoint.tokenizer, shown=str(checkpoint.path / "tokenizer.json"))
    named = {name: llama_name(name) for name in checkpoint.model}
    tensors = {theirs: checkpoint.model[ours] for ours, theirs in named.items() if theirs is not None}
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != llama_shapes(shape):
        raise DataError(f"the weights in {checkpoint.path} are not those of its config.json")
    left_behind = tuple(sorted({ours.partition(".")[0] for ours, theirs in named.items() if theirs is None}))
    parent = Parent("checkpoint", checkpoint.digest, str(checkpoint.path))
    return CausalPart(shape, tensors, tokenizer, parent, left_behind, trained)


def _causal_shape(trained: Trained) -> TransformerConfig:
    where, kind = trained.checkpoint.path, trained.config.get("kind")
    model: dict[str, Any] = trained.config.get("model") or {}
    if "transformer" in model:
        structured = StructuredConfig.from_dict(model)
        if structured.predicate_memory is not None:
            raise UsageError(
                f"{where} has a predicate memory (model.predicate_memory), which its causal pass reads between its "
                "blocks; no Llama has a counterpart of it",
                hint="export a model trained without it; generate and evaluate work on this one as it is",
            )
        return structured.transformer
    if kind != "lm":
        raise UsageError(
            f"{where} is a model of kind {kind!r}, a graph reasoner: it knows no text and no Llama has a counterpart "
            "of it",
            hint="export takes models of strata train-lm",
        )
    return TransformerConfig.from_dict(model)


def converted(tensor: Tensor, dtype: str | None, name: str) -> Tensor:
    """The tensor in another dtype, contiguous.

    Raises:
        DataError: a finite number would become infinite.
    """
    if dtype is None:
        return tensor.contiguous()
    result = tensor.to(getattr(torch, dtype)).contiguous()
    if dtype == "float16" and bool((torch.isinf(result) & torch.isfinite(tensor)).any()):
        raise DataError(
            f"{name} has numbers beyond {torch.finfo(torch.float16).max:.0f}, which float16 cannot hold",
            hint="use --dtype bfloat16 or float32",
        )
    return result

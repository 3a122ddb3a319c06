"""A language model and its tokenizer from a run, a checkpoint, or a folder that transformers or strata export wrote."""

from __future__ import annotations

from pathlib import Path

import torch

from strata_core.corpus.text.tokenizer import TextTokenizer, check_tokenizer
from strata_core.errors import DataError, UsageError
from strata_core.inference.trained_task import trained_model
from strata_core.models import LanguageModel, StructuredLanguageModel
from strata_core.observer import SILENT, Observer
from strata_core.training.checkpoint import copy_tensors, model_tensors
from strata_core.training.llama_folder import is_llama_folder, open_llama_folder
from strata_core.training.trained import BEST_OR_LATEST, find_trained

CPU = torch.device("cpu")


def load_language_model(
    path: Path, *, choose: str = BEST_OR_LATEST, device: torch.device = CPU, observer: Observer = SILENT
) -> tuple[LanguageModel | StructuredLanguageModel, TextTokenizer]:
    """The model in float32 and set to evaluation, and its tokenizer.

    Args:
        path: a run, a checkpoint, or a folder of a Llama in safetensors with its tokenizer.json.
        choose: which checkpoint of a run; see `find_trained`.
        device: where to.
        observer: told which checkpoint it is.

    Raises:
        UsageError: there is nothing at `path`, or a model of graphs.
        VerificationError: the folder holds what would run code when loaded.
        DataError: it is damaged, has no tokenizer, or is a model that strata does not compute.
    """
    if is_llama_folder(path):
        folder = open_llama_folder(path)
        tokenizer = folder.text_tokenizer()
        imported = LanguageModel(folder.shape)
        copy_tensors(folder.tensors(), model_tensors(imported), source=str(path))
        return imported.to(device).eval(), tokenizer
    trained = find_trained(path, choose=choose, observer=observer)
    where, data = trained.checkpoint.path, trained.checkpoint.tokenizer
    model = trained_model(trained, device).float()
    if not isinstance(model, LanguageModel | StructuredLanguageModel):
        raise UsageError(
            f"{where} is a {trained.config.get('kind')} model of graphs, which knows no text",
            hint="name a model of strata train-lm",
        )
    if data is None:
        raise DataError(f"{where} has no tokenizer.json, so its tokens cannot be told as text")
    return model, check_tokenizer(data, shown=str(where / "tokenizer.json"))

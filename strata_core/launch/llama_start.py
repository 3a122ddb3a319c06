"""Whether a folder of a Llama is the language model that a recipe and its corpus describe."""

from __future__ import annotations

import json
from typing import Any

from torch import nn

from strata_core.errors import RecipeError
from strata_core.models.transformer import Transformer
from strata_core.observer import Observer
from strata_core.training.llama_folder import LlamaFolder

_COMPARED = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "d_ff": "intermediate_size",
    "rope_theta": "rope_theta",
    "norm_eps": "rms_norm_eps",
    "tie_embeddings": "tie_word_embeddings",
}
_WITHOUT_EFFECT = ("version", "truncation", "padding", "post_processor")


def check_fits(folder: LlamaFolder, model: nn.Module, tokenizer: bytes | None, observer: Observer) -> None:
    """Refuses a folder whose model or tokenizer is another than the recipe's.

    Args:
        folder: to start from.
        model: to be filled.
        tokenizer: the corpus's tokenizer.json; None to leave it unchecked.
        observer: warned of what cannot be checked, and of positions that the folder's model has not seen.

    Raises:
        RecipeError: the model has no transformer, or `problems` has a line for each key that differs.
    """
    transformer = getattr(model, "transformer", None)
    if not isinstance(transformer, Transformer):
        raise RecipeError(
            f"run.warm_start {folder.path} is a language model, and the recipe's model is not",
            hint="start without it, or from a checkpoint of such a model",
        )
    ours, theirs = transformer.config, folder.shape
    problems = [
        f"model.{key} is {_shown(getattr(ours, key))}; {their_key} in config.json is {_shown(getattr(theirs, key))}"
        for key, their_key in _COMPARED.items()
        if getattr(ours, key) != getattr(theirs, key)
    ]
    if folder.tokenizer is None:
        observer.warning(f"run.warm_start {folder.path}: without tokenizer.json, so that the corpus's is not compared")
    elif tokenizer is not None:
        problems += tokenizer_differences(tokenizer, folder.tokenizer)
    if problems:
        raise RecipeError(
            f"run.warm_start {folder.path}: it is another model than the recipe and the corpus describe",
            problems=tuple(problems),
            hint=f"write its values in the recipe, and prepare the corpus with --tokenizer {folder.path}",
        )
    if ours.max_seq_len > theirs.max_seq_len:
        observer.warning(
            f"run.warm_start {folder.path}: model.max_seq_len is {ours.max_seq_len}; max_position_embeddings in "
            f"config.json is {theirs.max_seq_len}, so later positions are new to it"
        )


def tokenizer_differences(ours: bytes, theirs: bytes) -> list[str]:
    """A line for each part of two tokenizer.json that differs, of those that decide which tokens a text has."""
    here, there = _parts(ours), _parts(theirs)
    return [
        f"tokenizer.json: {key} differs: the corpus's{_count(here.get(key))}, the folder's{_count(there.get(key))}"
        for key in sorted(here.keys() | there.keys())
        if here.get(key) != there.get(key)
    ]


def _parts(data: bytes) -> dict[str, Any]:
    """Top-level parts, with the model's own one by one; written anew by the library, so that its spellings agree."""
    from tokenizers import Tokenizer

    try:
        data = Tokenizer.from_str(data.decode()).to_str().encode()
        content = json.loads(data)
    # The library raises bare Exception for whatever it does not understand.
    except Exception as error:
        return {"the file": f"{error}"}
    model = content.pop("model", None) or {}
    parts = {key: value for key, value in content.items() if key not in _WITHOUT_EFFECT}
    return parts | {f"model.{key}": value for key, value in model.items()}


def _count(part: Any) -> str:
    return f" ({len(part):,} entries)" if isinstance(part, dict | list) else ""


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

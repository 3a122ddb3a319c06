"""The models, nn.Modules alone, and how one is built from the config a checkpoint carries."""

from __future__ import annotations

from typing import Any

from torch import nn

from strata_core.errors import DataError
from strata_core.models.initialisation import initialise
from strata_core.models.language_model import LanguageModel
from strata_core.models.transformer import TransformerConfig

__all__ = ["LanguageModel", "TransformerConfig", "config_of", "initialise", "model_from_config"]

_KINDS = {"lm": (LanguageModel, TransformerConfig)}


def config_of(model: nn.Module) -> dict[str, Any]:
    """What `model_from_config` needs to build the same module, as JSON values: {"kind": ..., "model": {...}}.

    Raises:
        TypeError: the model is of no kind that strata saves.
    """
    for kind, (module, _) in _KINDS.items():
        if type(model) is module:
            return {"kind": kind, "model": model.config.to_dict()}
    raise TypeError(f"{type(model).__name__} is not a kind of model that strata saves")


def model_from_config(config: dict[str, Any]) -> nn.Module:
    """A module of the config's shape; torch's default values until `initialise` or a checkpoint sets them.

    Raises:
        DataError: the kind or a field is unknown, or a field is missing.
    """
    kind = config.get("kind")
    if kind not in _KINDS:
        raise DataError(
            f"config.json names the kind of model {kind!r}; known: {', '.join(sorted(_KINDS))}",
            hint="load it with the version of strata that wrote it",
        )
    module, shape = _KINDS[kind]
    return module(shape.from_dict(config.get("model", {})))

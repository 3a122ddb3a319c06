"""The models, nn.Modules alone, and how one is built from the config a checkpoint carries."""

from __future__ import annotations

from typing import Any

from torch import nn

from strata_core.errors import DataError
from strata_core.models.graph_reasoner import GraphReasoner, ReasonerConfig
from strata_core.models.initialisation import initialise
from strata_core.models.knowledge_graph_reasoner import KnowledgeGraphConfig, KnowledgeGraphReasoner
from strata_core.models.language_model import LanguageModel
from strata_core.models.path_composition import CompositionConfig, PathComposition
from strata_core.models.structured_language_model import StructuredConfig, StructuredLanguageModel
from strata_core.models.transformer import TransformerConfig

__all__ = [
    "LanguageModel",
    "StructuredConfig",
    "StructuredLanguageModel",
    "TransformerConfig",
    "initialise",
    "model_from_config",
]

_KINDS: dict[str, tuple[Any, Any]] = {
    "lm": (LanguageModel, TransformerConfig),
    "structured-lm": (StructuredLanguageModel, StructuredConfig),
    "graph-reasoner": (GraphReasoner, ReasonerConfig),
    "knowledge-graph": (KnowledgeGraphReasoner, KnowledgeGraphConfig),
    "path-composition": (PathComposition, CompositionConfig),
}


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

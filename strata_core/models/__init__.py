"""The models: nn.Modules alone."""

from __future__ import annotations

from strata_core.models.initialisation import initialise
from strata_core.models.language_model import LanguageModel
from strata_core.models.structured_language_model import StructuredConfig, StructuredLanguageModel
from strata_core.models.transformer import TransformerConfig

__all__ = ["LanguageModel", "StructuredConfig", "StructuredLanguageModel", "TransformerConfig", "initialise"]

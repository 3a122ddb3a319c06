"""The pure language model: a transformer and the weight that turns its states into next-token scores.

Shapes: B batch, L positions, D model width, V vocabulary.
"""

from __future__ import annotations

from torch import Tensor, nn

from strata_core.models.attention import AttentionPlan
from strata_core.models.transformer import CAUSAL, Transformer, TransformerConfig


class LanguageModel(nn.Module):
    """Gives states, not scores: `objectives.next_token` multiplies them by `output_weight` piece by piece."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        self.output: nn.Linear | None = None
        if not config.tie_embeddings:
            self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)

    @property
    def output_weight(self) -> Tensor:
        """float [V, D]; the embedding itself when tied."""
        return self.transformer.embedding.weight if self.output is None else self.output.weight

    def forward(
        self, tokens_BL: Tensor, *, attention: AttentionPlan = CAUSAL, positions_BL: Tensor | None = None
    ) -> Tensor:
        """Normalised states, float [B, L, D], of int64 tokens (see `Transformer.forward`)."""
        return self.transformer(tokens_BL, attention=attention, positions_BL=positions_BL)

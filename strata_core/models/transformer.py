"""The transformer: pieces that can be called one by one, and the usual way through all of them.

Shapes: B batch, L positions, D model width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from strata_core.errors import DataError, RecipeError
from strata_core.models.attention import Attention, AttentionPlan
from strata_core.models.autocast import product_dtype
from strata_core.models.config import ModelConfig
from strata_core.models.feed_forward import FeedForward
from strata_core.models.initialisation import INITIAL_STD
from strata_core.models.normalisation import RMSNorm
from strata_core.models.rotary import Rotation, rotation_at

CAUSAL = AttentionPlan(causal=True)


@dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """The shape of a transformer.

    Attributes:
        vocab_size: rows of the embedding.
        d_model: width of a state.
        n_layers: blocks.
        n_heads: query heads; divides d_model into even widths.
        n_kv_heads: key and value heads, each shared by n_heads / n_kv_heads query heads.
        d_ff: hidden width of the feed-forward layer.
        max_seq_len: longest sequence, in positions.
        dropout: probability, on the embedded input and on what each block adds; never inside attention, where
            it would rule out the fused kernels.
        rope_theta: base of the rotary angles.
        norm_eps: added to the mean square before its root is taken.
        tie_embeddings: whether the output weight is the embedding.

    Raises:
        RecipeError: widths and heads do not divide.
    """

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_ff: int
    max_seq_len: int
    dropout: float = 0.0
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.d_model % (2 * self.n_heads):
            raise RecipeError(
                f"model.d_model = {self.d_model} cannot be cut into {self.n_heads} (model.n_heads) even widths",
                hint="make d_model a multiple of 2 x n_heads",
            )
        if self.n_heads % self.n_kv_heads:
            raise RecipeError(
                f"model.n_kv_heads = {self.n_kv_heads} does not divide model.n_heads = {self.n_heads}",
                hint="choose a divisor of n_heads",
            )


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)), each branch under dropout."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(config.d_model, config.norm_eps)
        self.attention = Attention(config.d_model, config.n_heads, config.n_kv_heads)
        self.feed_forward_norm = RMSNorm(config.d_model, config.norm_eps)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.dropout = nn.Dropout(config.dropout)
        self._branch_std = INITIAL_STD / math.sqrt(2 * config.n_layers)

    def initial_stds(self) -> dict[str, float]:
        """Smaller where a branch ends: the sum of 2 x n_layers branches then keeps its variance (GPT-2)."""
        return {"attention.output.weight": self._branch_std, "feed_forward.down.weight": self._branch_std}

    def forward(self, states_BLD: Tensor, plan: AttentionPlan, rotation: Rotation) -> Tensor:
        """The states after the block, float [B, L, D]."""
        read_BLD = self.attention(self.attention_norm(states_BLD), plan, rotation)
        states_BLD = states_BLD + self.dropout(read_BLD)
        return states_BLD + self.dropout(self.feed_forward(self.feed_forward_norm(states_BLD)))


class Transformer(nn.Module):
    """Embedding, blocks and final norm; one set of weights for the causal and the full pass.

    Attributes:
        recompute: whether training keeps only each block's input and computes its inside again in backward.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.recompute = False
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = RMSNorm(config.d_model, config.norm_eps)

    def embed(self, tokens_BL: Tensor) -> Tensor:
        """Embedded int64 tokens, float [B, L, D], before dropout."""
        return self.embedding(tokens_BL)

    def rotation(self, states_BLD: Tensor, positions_BL: Tensor | None = None) -> Rotation:
        """The rotation for these states: at the given positions, or 0, 1, 2, ...

        Raises:
            DataError: the sequence is longer than max_seq_len.
        """
        length = states_BLD.shape[1]
        if length > self.config.max_seq_len:
            raise DataError(
                f"a sequence has {length} positions; model.max_seq_len is {self.config.max_seq_len}",
                hint="shorten it, or train with a larger max_seq_len",
            )
        if positions_BL is None:
            positions_BL = torch.arange(length, device=states_BLD.device)[None]
        return rotation_at(positions_BL, self.config.d_model // self.config.n_heads, self.config.rope_theta)

    def run_blocks(
        self,
        states_BLD: Tensor,
        plan: AttentionPlan,
        rotation: Rotation,
        *,
        start: int = 0,
        stop: int | None = None,
    ) -> Tensor:
        """The states after blocks start .. stop - 1, float [B, L, D]."""
        plan = plan.with_addend(product_dtype(states_BLD))
        for block in self.blocks[start:stop]:
            if self.recompute and self.training and torch.is_grad_enabled():
                states_BLD = checkpoint(block, states_BLD, plan, rotation, use_reentrant=False)
            else:
                states_BLD = block(states_BLD, plan, rotation)
        return states_BLD

    def forward(
        self, inputs: Tensor, *, attention: AttentionPlan = CAUSAL, positions_BL: Tensor | None = None
    ) -> Tensor:
        """Normalised states, float [B, L, D].

        Args:
            inputs: int64 tokens [B, L], or states [B, L, D] that the caller embedded.
            attention: what each position may read.
            positions_BL: integers [B or 1, L]; None: 0, 1, 2, ...

        Raises:
            DataError: the sequence is longer than max_seq_len.
        """
        states_BLD = inputs if inputs.is_floating_point() else self.embed(inputs)
        rotation = self.rotation(states_BLD, positions_BL)
        states_BLD = self.run_blocks(self.dropout(states_BLD), attention, rotation)
        return self.norm(states_BLD)

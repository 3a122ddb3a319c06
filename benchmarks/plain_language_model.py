"""The language model as one writes it by hand: torch's own modules, all scores at once. A peer for benchmarks/lm.py."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.models import TransformerConfig


class PlainBlock(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        width = config.d_model // config.n_heads
        self.attention_norm = nn.RMSNorm(config.d_model, eps=config.norm_eps)
        self.attention = nn.ModuleDict(
            {
                "query": nn.Linear(config.d_model, config.n_heads * width, bias=False),
                "key": nn.Linear(config.d_model, config.n_kv_heads * width, bias=False),
                "value": nn.Linear(config.d_model, config.n_kv_heads * width, bias=False),
                "output": nn.Linear(config.n_heads * width, config.d_model, bias=False),
            }
        )
        self.feed_forward_norm = nn.RMSNorm(config.d_model, eps=config.norm_eps)
        self.feed_forward = nn.ModuleDict(
            {
                "gate": nn.Linear(config.d_model, config.d_ff, bias=False),
                "up": nn.Linear(config.d_model, config.d_ff, bias=False),
                "down": nn.Linear(config.d_ff, config.d_model, bias=False),
            }
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        batch, length, _ = x.shape
        h = self.attention_norm(x)
        q, k, v = (
            self.attention[name](h).view(batch, length, -1, self.config.d_model // self.config.n_heads).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        q, k = turn(q, cosine, sine), turn(k, cosine, sine)
        read = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=self.config.n_kv_heads != self.config.n_heads
        )
        x = x + self.dropout(self.attention["output"](read.transpose(1, 2).reshape(batch, length, -1)))
        h = self.feed_forward_norm(x)
        h = F.silu(self.feed_forward["gate"](h)) * self.feed_forward["up"](h)
        return x + self.dropout(self.feed_forward["down"](h))


def turn(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class PlainLanguageModel(nn.Module):
    """Tied embeddings; parameters are named as strata's are, without the leading "transformer."."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(PlainBlock(config) for _ in range(config.n_layers))
        self.norm = nn.RMSNorm(config.d_model, eps=config.norm_eps)
        width = config.d_model // config.n_heads
        frequency = config.rope_theta ** (-torch.arange(0, width, 2) / width)
        angle = torch.arange(config.max_seq_len)[:, None] * frequency
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores [batch, length, vocabulary]."""
        length = tokens.shape[1]
        x = self.dropout(self.embedding(tokens))
        for block in self.blocks:
            x = block(x, self.cosine[:length], self.sine[:length])
        return self.norm(x) @ self.embedding.weight.T

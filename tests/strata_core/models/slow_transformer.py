"""The transformer once more, one position and one head at a time, in elementary operations on float64 tensors.

It takes a model's parameters by name and shares no code with it; autograd gives its gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

MayRead = Callable[[int, int], bool]
"""(query position, key position) -> whether the query reads the key."""


def normalise(vector: Tensor, scale: Tensor, eps: float) -> Tensor:
    return vector / torch.sqrt((vector * vector).sum() / len(vector) + eps) * scale


def turn(vector: Tensor, position: int, theta: float) -> Tensor:
    half = len(vector) // 2
    turned = list(vector)
    for pair in range(half):
        angle = position * theta ** (-2 * pair / len(vector))
        first, second = vector[pair], vector[pair + half]
        turned[pair] = first * math.cos(angle) - second * math.sin(angle)
        turned[pair + half] = first * math.sin(angle) + second * math.cos(angle)
    return torch.stack(turned)


def attend(states: list[Tensor], weights: Mapping[str, Tensor], config: Any, may_read: MayRead) -> list[Tensor]:
    width = config.d_model // config.n_heads
    parts = (weights[f"{part}.weight"] for part in ("query", "key", "value"))
    queries, keys, values = ([weight @ state for state in states] for weight in parts)
    read = []
    for here in range(len(states)):
        heads = []
        for head in range(config.n_heads):
            shared = head // (config.n_heads // config.n_kv_heads)
            mine = slice(head * width, (head + 1) * width)
            theirs = slice(shared * width, (shared + 1) * width)
            query = turn(queries[here][mine], here, config.rope_theta)
            seen = [there for there in range(len(states)) if may_read(here, there)]
            scores = [query @ turn(keys[there][theirs], there, config.rope_theta) / math.sqrt(width) for there in seen]
            strengths = [torch.exp(score - max(scores).detach()) for score in scores]
            shares = [strength / sum(strengths) for strength in strengths]
            heads.append(sum(share * values[there][theirs] for share, there in zip(shares, seen, strict=True)))
        read.append(weights["output.weight"] @ torch.cat(heads))
    return read


def under(prefix: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}


def slow_states(weights: Mapping[str, Tensor], config: Any, tokens: list[int], may_read: MayRead) -> Tensor:
    """Normalised states [L, D] of one row."""
    weights = under("transformer.", weights)
    states = [weights["embedding.weight"][token] for token in tokens]
    for number in range(config.n_layers):
        block = under(f"blocks.{number}.", weights)
        inner = [normalise(state, block["attention_norm.weight"], config.norm_eps) for state in states]
        read = attend(inner, under("attention.", block), config, may_read)
        states = [state + added for state, added in zip(states, read, strict=True)]
        for here, state in enumerate(states):
            vector = normalise(state, block["feed_forward_norm.weight"], config.norm_eps)
            gate = block["feed_forward.gate.weight"] @ vector
            hidden = gate / (1 + torch.exp(-gate)) * (block["feed_forward.up.weight"] @ vector)
            states[here] = state + block["feed_forward.down.weight"] @ hidden
    return torch.stack([normalise(state, weights["norm.weight"], config.norm_eps) for state in states])


def slow_nats(states: Tensor, output_weight: Tensor, labels: list[int]) -> Tensor:
    """The loss summed over a row's labels."""
    total = torch.zeros((), dtype=states.dtype)
    for state, label in zip(states, labels, strict=True):
        scores = output_weight @ state
        total = total + torch.log(torch.exp(scores - scores.max()).sum()) + scores.max() - scores[label]
    return total

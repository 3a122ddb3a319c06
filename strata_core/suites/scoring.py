"""Log probabilities of sentences under a causal model.

Shapes: B batch, L positions, D model width, N rows of a product.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from strata_core.errors import DataError
from strata_core.inference.causal_model import CausalModel
from strata_core.objectives.next_token import next_token_nats

BATCH_TOKENS = 4096
"""Positions, padding included, that are computed at once."""


@torch.inference_mode()
def log_probabilities(model: CausalModel, sentences: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """The log probability of every token in nats, float64, each sentence a document of its own.

    The first token has that of beginning a document: it follows the end of another. Sentences go by length, and
    padding stands behind them, where a causal pass does not look.
    """
    results: list[np.ndarray] = [np.zeros(0)] * len(sentences)
    order = sorted(range(len(sentences)), key=lambda index: len(sentences[index]))
    while order:
        width = len(sentences[order[-1]])
        size = max(1, BATCH_TOKENS // max(1, width))
        chosen, order = order[-size:], order[:-size]
        for index, nats in zip(chosen, _batch(model, [sentences[index] for index in chosen], width), strict=True):
            results[index] = -nats
    return results


def _batch(model: CausalModel, sentences: list[Sequence[int]], width: int) -> list[np.ndarray]:
    end = model.tokenizer.end_of_text_id
    tokens_BL = torch.full((len(sentences), width + 1), end)
    for row, sentence in enumerate(sentences):
        tokens_BL[row, 1 : len(sentence) + 1] = torch.tensor(sentence)
    tokens_BL = tokens_BL.to(model.device)
    lengths_B = torch.tensor([len(sentence) for sentence in sentences], device=model.device)
    real_BL = torch.arange(width, device=model.device)[None] < lengths_B[:, None]
    states_ND = model.states(tokens_BL[:, :-1])[real_BL]
    nats_N = next_token_nats(states_ND, model.module.output_weight, tokens_BL[:, 1:][real_BL]).double().cpu()
    return [nats.numpy() for nats in nats_N.split(lengths_B.tolist())]


def encode_sentence(model: CausalModel, sentence: str, where: str) -> list[int]:
    """The tokens of a sentence.

    Raises:
        DataError: there are more of them than the model takes.
    """
    tokens = list(model.tokenizer.tokenizer.encode(sentence, add_special_tokens=False).ids)
    if not 0 < len(tokens) <= model.longest:
        raise DataError(f"{where}: {len(tokens)} tokens; {model.name} takes from 1 to {model.longest}")
    return tokens

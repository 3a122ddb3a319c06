"""What the full pass starts from: one state a word.

Shapes: B batch, W words, T subword tokens of all words in a row, K features of a word, D model width, L positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.models.word_features import N_FEATURES


@dataclass(frozen=True)
class Words:
    """Sentences as the full pass reads them.

    Attributes:
        tokens_T: int64, the subword tokens of each word, word after word; padding words have none.
        offsets_N: int64 [B * W], where the tokens of each word begin in tokens_T.
        features_BWK: int64 buckets (`word_features`); of no meaning at padding.
        real_BW: bool, False at padding.
    """

    tokens_T: Tensor
    offsets_N: Tensor
    features_BWK: Tensor
    real_BW: Tensor


def pack_words(
    tokens: Sequence[np.ndarray], token_spans: Sequence[np.ndarray], features: Sequence[np.ndarray]
) -> Words:
    """Sentences of unequal length as one batch.

    Args:
        tokens: for each sentence its subword tokens, integers [T].
        token_spans: first token of each word and the one after its last, integers [W, 2]; spans may overlap or be
            empty.
        features: `word_features` of each word, integers [W, K].
    """
    longest = max(len(spans) for spans in token_spans)
    lengths = np.zeros((len(tokens), longest), dtype=np.int64)
    feature_rows = np.zeros((len(tokens), longest, N_FEATURES), dtype=np.int64)
    pieces = []
    for row, (sentence, spans) in enumerate(zip(tokens, token_spans, strict=True)):
        lengths[row, : len(spans)] = spans[:, 1] - spans[:, 0]
        feature_rows[row, : len(spans)] = features[row]
        pieces += [sentence[start:stop].astype(np.int64) for start, stop in spans.tolist()]
    counts = torch.tensor([len(spans) for spans in token_spans])
    return Words(
        tokens_T=torch.from_numpy(np.concatenate(pieces)),
        offsets_N=torch.from_numpy(np.cumsum(lengths.ravel()) - lengths.ravel()),
        features_BWK=torch.from_numpy(feature_rows),
        real_BW=torch.arange(longest)[None, :] < counts[:, None],
    )


class WordStates(nn.Module):
    """The sum of a word's subword and feature embeddings, then x + GELU(W [x before; x; x after]).

    W starts at zero, so that the window does nothing at first. The window stands in for what a recurrent encoder gets
    from its neighbours for nothing.

    Args:
        d_model: width of a state.
        n_buckets: rows of the feature embedding.
        word_dropout: probability, in training, that a word's embeddings are left out altogether.
    """

    def __init__(self, d_model: int, n_buckets: int, word_dropout: float) -> None:
        super().__init__()
        self.features = nn.Embedding(n_buckets, d_model)
        self.window = nn.Linear(3 * d_model, d_model, bias=False)
        self.word_dropout = word_dropout

    def initial_stds(self) -> dict[str, float]:
        """The window starts as nothing."""
        return {"window.weight": 0.0}

    def forward(self, words: Words, embedding_VD: Tensor) -> Tensor:
        """float [B, W, D], zero at padding, of words and the subwords' embedding."""
        subwords_ND = F.embedding_bag(words.tokens_T, embedding_VD, words.offsets_N, mode="sum")
        states_BWD = subwords_ND.unflatten(0, words.real_BW.shape) + self.features(words.features_BWK).sum(dim=2)
        states_BWD = states_BWD * self._kept(words.real_BW)[..., None]
        before_BWD, after_BWD = F.pad(states_BWD, (0, 0, 1, 0))[:, :-1], F.pad(states_BWD, (0, 0, 0, 1))[:, 1:]
        seen = torch.cat((before_BWD, states_BWD, after_BWD), dim=-1)
        return states_BWD + F.gelu(self.window(seen)) * words.real_BW[..., None]

    def _kept(self, real_BW: Tensor) -> Tensor:
        if not self.training or self.word_dropout == 0:
            return real_BW
        return real_BW & (torch.rand(real_BW.shape, device=real_BW.device) >= self.word_dropout)


def states_at(states_BLD: Tensor, positions_BW: Tensor) -> Tensor:
    """The states at positions (integers in [0, L)) of each row, float [B, W, D].

    In the causal pass a word is known at its last subword.
    """
    rows_B1 = torch.arange(states_BLD.shape[0], device=states_BLD.device)[:, None]
    return states_BLD[rows_B1, positions_BW]

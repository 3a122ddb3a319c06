"""A network that marks the characters of a raw text: ends of tokens, of sentences, multiword tokens.

Shapes: B windows, N characters, S characters of all windows, F features of a character, D width, C marks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.models.config import ModelConfig

N_MARKS = 5
"""Nothing ends here; a token does; a token and its sentence; a multiword token; that and its sentence."""

_KERNEL = 5


@dataclass(frozen=True)
class SegmenterConfig(ModelConfig):
    """The shape of a segmenter.

    Attributes:
        width: of a character's state.
        n_layers: convolutions; each reaches twice as far as the one before.
        buckets: rows of the embedding that all features of characters share.
        dropout: probability that a channel of a window is left out of a layer's result, in training.
        feature_dropout: probability that a feature of a character is left out of the input, in training.
    """

    width: int = 64
    n_layers: int = 5
    buckets: int = 32768
    dropout: float = 0.2
    feature_dropout: float = 0.1

    @property
    def reach(self) -> int:
        """How many characters on either side a mark can depend on, features apart."""
        return (_KERNEL // 2) * (2**self.n_layers - 1)


class CharacterSegmenter(nn.Module):
    """The sum of a character's features, residual layers of dilated convolutions, and a score for each mark.

    What stands outside of a text is zero in every layer, so that a window with as much of its neighbours as `reach`
    gives the scores of the whole text.
    """

    def __init__(self, config: SegmenterConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.embedding = nn.Embedding(config.buckets, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(config.n_layers))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, _KERNEL, dilation=2**layer, padding=(_KERNEL // 2) * 2**layer)
            for layer in range(config.n_layers)
        )
        self.last_norm = nn.LayerNorm(width)
        self.marks = nn.Linear(width, N_MARKS)

    def initial_stds(self) -> dict[str, float]:
        """About unit variance of the summed features; convolutions that add a third of it."""
        fan_in = _KERNEL * self.config.width
        convolutions = {f"convolutions.{layer}.weight": (3 * fan_in) ** -0.5 for layer in range(self.config.n_layers)}
        return {"embedding.weight": 0.18, **convolutions}

    def forward(self, features_BNF: Tensor, real_BN: Tensor) -> Tensor:
        """float [B, N, C], scores of each mark.

        Args:
            features_BNF: int32 or int64, `character_features` of a text.
            real_BN: bool, False where there is no character.
        """
        states_BND = self._dropout(self._read(features_BNF))
        real_BN1 = real_BN[..., None]
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            read_BDN = (norm(states_BND) * real_BN1).transpose(1, 2)
            states_BND = states_BND + self._dropout(F.gelu(convolution(read_BDN).transpose(1, 2)))
        return self.marks(self.last_norm(states_BND))

    def _read(self, features_BNF: Tensor) -> Tensor:
        """The sum of each character's features, float [B, N, D]; in training some are left out."""
        weight, weights_SF = self.embedding.weight, None
        features_SF = features_BNF.flatten(0, 1)
        if self.training and self.config.feature_dropout:
            kept_SF = torch.rand(features_SF.shape, device=weight.device) >= self.config.feature_dropout
            weights_SF = kept_SF.to(weight.dtype)
        sums_SD = F.embedding_bag(features_SF, weight, mode="sum", per_sample_weights=weights_SF)
        return sums_SD.unflatten(0, features_BNF.shape[:2])

    def _dropout(self, states_BND: Tensor) -> Tensor:
        """Leaves whole channels of a window out (Tompson et al. 2015, "spatial dropout")."""
        return F.dropout1d(states_BND.transpose(1, 2), self.config.dropout, self.training).transpose(1, 2)

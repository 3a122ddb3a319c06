"""Relations composed along paths: what relates the two ends of a chain of relations.

Each relation has a vector, and one cell makes the vector of a composed relation of the vectors of its two parts. A
path of any length is composed along a bracketing, a binary tree over its relations; composition being associative,
all bracketings of a path should give the same.

Shapes: N relations on all paths, T bracketings of all paths, L levels, W nodes of the widest level, D width, K classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.errors import RecipeError
from strata_core.models.config import ModelConfig
from strata_core.models.normalisation import RMSNorm

_NORM_EPS = 1e-6
_HIDDEN_MULTIPLE = 4


@dataclass(frozen=True)
class CompositionConfig(ModelConfig):
    """The shape of a `PathComposition`.

    Attributes:
        n_relations: relations that have a vector.
        n_targets: classes.
        d_model: width of the vectors.
        composition: name of one of `CELLS`.
        dropout: probability, on what a cell makes of its parts.

    Raises:
        RecipeError: there is no such cell.
    """

    n_relations: int
    n_targets: int
    d_model: int = 64
    composition: str = "mlp"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.composition not in CELLS:
            raise RecipeError(f"model.composition is {self.composition!r}", hint=f"choose one of {', '.join(CELLS)}")


class BilinearCell(nn.Module):
    """A bilinear map of both parts, of rank 4 D: out(left(x) * right(y))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.left = nn.Linear(width, _HIDDEN_MULTIPLE * width)
        self.right = nn.Linear(width, _HIDDEN_MULTIPLE * width)
        self.out = nn.Linear(_HIDDEN_MULTIPLE * width, width)

    def forward(self, left_WD: Tensor, right_WD: Tensor) -> Tensor:
        """float [W, D] twice to float [W, D]."""
        return self.out(self.left(left_WD) * self.right(right_WD))


class PerceptronCell(nn.Module):
    """A perceptron over both parts with one hidden layer of 4 D."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * width, _HIDDEN_MULTIPLE * width)
        self.out = nn.Linear(_HIDDEN_MULTIPLE * width, width)

    def forward(self, left_WD: Tensor, right_WD: Tensor) -> Tensor:
        """float [W, D] twice to float [W, D]."""
        return self.out(F.gelu(self.hidden(torch.cat([left_WD, right_WD], dim=-1))))


class GatedCell(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) whose state is the left part and whose input is the right one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gru = nn.GRUCell(width, width)

    def forward(self, left_WD: Tensor, right_WD: Tensor) -> Tensor:
        """float [W, D] twice to float [W, D]."""
        return self.gru(right_WD, left_WD)


CELLS: dict[str, type[nn.Module]] = {"bilinear": BilinearCell, "mlp": PerceptronCell, "gru": GatedCell}
"""What composes two parts, by the name that a recipe gives it."""


class PathComposition(nn.Module):
    """Composes paths along given bracketings and scores the classes of what comes out.

    Vectors are normalised to a root mean square of one, those of relations and those of composed relations alike, so
    that a cell meets inputs of one size at whatever depth.
    """

    def __init__(self, config: CompositionConfig) -> None:
        super().__init__()
        self.config = config
        self.relations = nn.Embedding(config.n_relations, config.d_model)
        self.cell = CELLS[config.composition](config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.norm = RMSNorm(config.d_model, _NORM_EPS)
        self.head = nn.Linear(config.d_model, config.n_targets)

    def initial_stds(self) -> dict[str, float]:
        """Relations of size one; matrices that keep the size of their input (LeCun et al. 1998)."""
        matrices = {name: parameter for name, parameter in self.named_parameters() if parameter.ndim == 2}
        stds = {name: 1 / math.sqrt(matrix.shape[1]) for name, matrix in matrices.items()}
        return {**stds, "relations.weight": 1.0}

    def forward(self, relations_N: Tensor, pairs_LW2: Tensor, roots_T: Tensor) -> Tensor:
        """The vectors that bracketings end in.

        Args:
            relations_N: int64 [N], the leaves, nodes 0 to N - 1.
            pairs_LW2: int64 [L, W, 2], children of the nodes of each level; node w of level l is number N + l W + w.
            roots_T: int64 [T], the last node of each bracketing.

        Returns:
            float [T, D].
        """
        states = self.norm(self.relations(relations_N))
        for pairs_W2 in pairs_LW2.unbind(0):
            left_WD, right_WD = states[pairs_W2].unbind(1)
            states = torch.cat([states, self.norm(self.dropout(self.cell(left_WD, right_WD)))])
        return states[roots_T]

    def relation_vectors(self, relations: Tensor) -> Tensor:
        """int64 [...] to float [..., D]: what relations are as composed ones."""
        return self.norm(self.relations(relations))

    def scores(self, states: Tensor) -> Tensor:
        """float [..., D] to float [..., K], logits."""
        return self.head(states)

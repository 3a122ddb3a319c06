"""What the graph reasoner tells from its states.

Shapes: M nodes, B examples, L pairs of nodes, P paths, D width, C classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.models.graphs.segments import largest_rows, segment_logsumexp, sum_rows, take_rows
from strata_core.models.perceptron import Perceptron


class CosineLink(nn.Module):
    """scale * cos(W u, W v): the log-odds of two nodes being linked."""

    def __init__(self, d_model: int, scale: float) -> None:
        super().__init__()
        self.project = nn.Linear(d_model, d_model, bias=False)
        self.scale = scale

    def initial_stds(self) -> dict[str, float]:
        """Keeps variances."""
        return {"project.weight": self.project.in_features**-0.5}

    def forward(self, nodes_MD: Tensor, links_L2: Tensor) -> Tensor:
        """float [L], from the states of nodes and pairs of their numbers, int64."""
        units_MD = F.normalize(self.project(nodes_MD), dim=-1, eps=1e-6)
        first_L, second_L = links_L2.unbind(1)
        return self.scale * (take_rows(units_MD, first_L) * take_rows(units_MD, second_L)).sum(dim=-1)


class PerceptronLink(nn.Module):
    """The log-odds of two nodes being linked, by a perceptron over product and absolute difference."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.perceptron = Perceptron(2 * d_model, d_model, 1)

    def forward(self, nodes_MD: Tensor, links_L2: Tensor) -> Tensor:
        """float [L], from the states of nodes and pairs of their numbers, int64."""
        first_L, second_L = links_L2.unbind(1)
        first_LD, second_LD = take_rows(nodes_MD, first_L), take_rows(nodes_MD, second_L)
        pair = torch.cat([first_LD * second_LD, (first_LD - second_LD).abs()], dim=-1)
        return self.perceptron(pair)[..., 0]


class StatusHead(nn.Module):
    """Status and support score of an example from the strongest signs of them among its nodes.

    It sees what the walk came to, and nothing of the paths that were given or how many they were.
    """

    def __init__(self, d_model: int, n_statuses: int, dropout: float) -> None:
        super().__init__()
        self.signs = nn.Linear(d_model, d_model)
        self.statuses = Perceptron(d_model, d_model, n_statuses, dropout)
        self.support = Perceptron(d_model, d_model, 1, dropout)

    def initial_stds(self) -> dict[str, float]:
        """Keeps variances."""
        return {"signs.weight": (2 / self.signs.in_features) ** 0.5}

    def signs_of(self, states_MD: Tensor, node_examples_M: Tensor, n_examples: int) -> Tensor:
        """float [B, D], each at least 0."""
        return largest_rows(torch.relu(self.signs(states_MD)), node_examples_M, n_examples, least=0.0)


def effective_number(scores_M: Tensor, node_examples_M: Tensor, n_examples: int) -> Tensor:
    """How many nodes share the softmax over each example's nodes, float [B]: 1 / sum of p ** 2, k where k are equal.

    It does not change when all scores do, as they fade on long walks.
    """
    totals_B = segment_logsumexp(scores_M.float(), node_examples_M, n_examples)
    shares_M = (scores_M.float() - totals_B.index_select(0, node_examples_M)).exp()
    return 1 / sum_rows(shares_M.square(), node_examples_M, n_examples).clamp(min=1e-6)


class NumberHead(nn.Module):
    """The number a query asks for: how many answers there are, how many nodes of some learned kinds, and what signs.

    A node that no walk came to is of no kind, by construction. The number of answers is told as its closeness to each
    number, by Gaussians of a fixed width.
    """

    _WIDTH = 0.35

    def __init__(self, d_model: int, d_query: int, n_classes: int, n_kinds: int = 8) -> None:
        super().__init__()
        self.kinds = nn.Linear(d_model, n_kinds)
        self.signs = nn.Linear(d_model, d_model)
        self.number = Perceptron(n_classes + n_kinds + d_model + d_query, 2 * d_model, n_classes)
        self.n_classes = n_classes

    def initial_stds(self) -> dict[str, float]:
        """Keeps variances."""
        return {
            "kinds.weight": 2 * self.kinds.in_features**-0.5,
            "signs.weight": (2 / self.signs.in_features) ** 0.5,
        }

    def forward(
        self, states_MD: Tensor, levels_MD: Tensor, node_examples_M: Tensor, modes_BW: Tensor, answers_B: Tensor
    ) -> Tensor:
        """float [B, C].

        Args:
            states_MD: float, what the walk came to.
            levels_MD: float, the same one step later, over the edges that the mode reads.
            node_examples_M: int64, whose each node is.
            modes_BW: float, vectors of what is asked for.
            answers_B: float, effective number of answers.
        """
        n_examples = modes_BW.shape[0]
        member_MK = torch.sigmoid(self.kinds(states_MD)) - torch.sigmoid(self.kinds.bias)
        counted_BK = sum_rows(member_MK, node_examples_M, n_examples)
        signs_MD = torch.relu(self.signs(levels_MD)) - torch.relu(self.signs.bias)
        signs_BD = largest_rows(signs_MD, node_examples_M, n_examples, least=0.0)
        numbers_C = torch.arange(self.n_classes, device=answers_B.device)
        closeness_BC = torch.exp(-0.5 * ((answers_B[:, None] - numbers_C) / self._WIDTH).square())
        return self.number(torch.cat([closeness_BC, counted_BK, signs_BD, modes_BW], dim=-1))


class PathSelector(nn.Module):
    """A score for each path, to be compared with the learned one of the threshold class (Zhou et al. 2021)."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.score = Perceptron(3 * d_model, d_model, 1, dropout)
        self.threshold = nn.Parameter(torch.zeros(1))

    def forward(self, paths_PD: Tensor, ends_PD: Tensor) -> Tensor:
        """float [P]: how far the score of a path is above the threshold."""
        features = torch.cat([paths_PD, ends_PD, paths_PD * ends_PD], dim=-1)
        return self.score(features)[..., 0] - self.threshold


class ConfidenceHead(nn.Module):
    """The log-odds of the model's own selection of paths being right.

    It reads the signs of the status, and the highest score of a path and the one closest to the threshold.
    """

    WIDEST = 8.0
    """Scores farther from the threshold count as this far."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.perceptron = Perceptron(d_model + 2, d_model, 1)

    def forward(self, signs_BD: Tensor, scores_P: Tensor, path_examples_P: Tensor) -> Tensor:
        """float [B]; scores are above the threshold where positive."""
        widest = self.WIDEST
        scores_P = scores_P.clamp(-widest, widest)
        extremes_P2 = torch.stack([scores_P, -scores_P.abs()], dim=1)
        extremes_B2 = largest_rows(extremes_P2, path_examples_P, signs_BD.shape[0], least=-widest)
        return self.perceptron(torch.cat([signs_BD, extremes_B2], dim=-1))[..., 0]

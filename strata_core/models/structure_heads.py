"""What is predicted of the words of a sentence from their states, wherever these come from.

Shapes: B batch, W words, D model width, P predicates of the batch, R relations, K roles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.models.biaffine import Biaffine
from strata_core.models.config import ModelConfig

NONE_ROLE = 0
"""The class of a (predicate, word) pair without a role; label number n of the corpus is class n + 1."""


@dataclass(frozen=True)
class HeadsConfig(ModelConfig):
    """Inventories and widths of the heads.

    Attributes:
        n_relations, n_node_types, n_roles: labels of the corpus, NONE not counted among the roles.
        n_chart_items: classes of the chart scheme.
        arc_width, relation_width, role_width: widths that the biaffine scores work in.
        dropout: probability, on the states and on the hidden vectors.
        reads: the pass whose word states the heads read: "full", or "causal", where a word is known at its last
            subword.
        n_xpos, n_feats, n_lemma_rules: labels of the corpus; 0: the model has no such head.
    """

    n_relations: int
    n_node_types: int
    n_roles: int
    n_chart_items: int
    arc_width: int = 256
    relation_width: int = 64
    role_width: int = 64
    dropout: float = 0.0
    reads: Literal["full", "causal"] = "full"
    n_xpos: int = 0
    n_feats: int = 0
    n_lemma_rules: int = 0

    @property
    def n_word_labels(self) -> dict[str, int]:
        """How many labels there are of each kind (labels.WORD_LABEL_KINDS) that the model has a head for."""
        counts = {"xpos": self.n_xpos, "feats": self.n_feats, "lemma_rule": self.n_lemma_rules}
        return {kind: count for kind, count in counts.items() if count}

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values, without those of heads that the model has not: as it was before there were any."""
        optional = ("n_xpos", "n_feats", "n_lemma_rules")
        return {name: value for name, value in super().to_dict().items() if value or name not in optional}


class Hidden(nn.Module):
    """dropout(GELU(W dropout(x) + b)): a state as one member of a pair."""

    def __init__(self, d_model: int, width: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(d_model, width)
        self.dropout = nn.Dropout(dropout)

    def initial_stds(self) -> dict[str, float]:
        """Keeps the variance of normalised states."""
        return {"linear.weight": self.linear.in_features**-0.5}

    def forward(self, states: Tensor) -> Tensor:
        """float [..., D] to float [..., width]."""
        return self.dropout(F.gelu(self.linear(self.dropout(states))))


class ArcHead(nn.Module):
    """Scores of each word having each head."""

    def __init__(self, d_model: int, width: int, dropout: float) -> None:
        super().__init__()
        self.root = nn.Parameter(torch.zeros(1, d_model))
        self.dependent = Hidden(d_model, width, dropout)
        self.head = Hidden(d_model, width, dropout)
        self.score = Biaffine(width, 1)

    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """float [B, W, W + 1]: [b, w, h] for word w + 1 under head h, the root being 0.

        -inf where the head is padding or the word itself.
        """
        rows, length = real_BW.shape
        heads_BHD = torch.cat((self.root.expand(rows, 1, -1), states_BWD), dim=1)
        scores_BWH = self.score.all_pairs(self.dependent(states_BWD), self.head(heads_BHD))[:, 0]
        itself_WH = torch.eye(length + 1, dtype=torch.bool, device=real_BW.device)[1:]
        real_BH = F.pad(real_BW, (1, 0), value=True)
        return scores_BWH.masked_fill(itself_WH | ~real_BH[:, None, :], float("-inf"))


class RelationHead(nn.Module):
    """Scores of the relation of each word to a head that is given."""

    def __init__(self, d_model: int, width: int, n_relations: int, dropout: float) -> None:
        super().__init__()
        self.root = nn.Parameter(torch.zeros(1, d_model))
        self.dependent = Hidden(d_model, width, dropout)
        self.head = Hidden(d_model, width, dropout)
        self.score = Biaffine(width, n_relations)

    def forward(self, states_BWD: Tensor, heads_BW: Tensor) -> Tensor:
        """float [B, W, R]; heads are int64, 0 being the root. Where they are negative the scores have no meaning."""
        rows, length = heads_BW.shape
        heads_BHD = torch.cat((self.root.expand(rows, 1, -1), states_BWD), dim=1)
        row_B1 = torch.arange(rows, device=heads_BW.device)[:, None]
        chosen_BWE = self.head(heads_BHD)[row_B1, heads_BW.clamp_min(0)]
        scores_NR = self.score.pairs(self.dependent(states_BWD).flatten(0, 1), chosen_BWE.flatten(0, 1))
        return scores_NR.unflatten(0, (rows, length))


class RoleHead(nn.Module):
    """Scores of the role of each word to predicates that are given."""

    def __init__(self, d_model: int, width: int, n_roles: int, dropout: float) -> None:
        super().__init__()
        self.predicate = Hidden(d_model, width, dropout)
        self.argument = Hidden(d_model, width, dropout)
        self.score = Biaffine(width, n_roles + 1)

    def forward(self, states_BWD: Tensor, predicates_P2: Tensor) -> Tensor:
        """float [P, W, K + 1]; class NONE_ROLE is no role.

        Args:
            states_BWD: float.
            predicates_P2: int64, the row of each predicate and its word, both from 0.
        """
        row_P, word_P = predicates_P2.unbind(dim=1)
        predicate_P1E = self.predicate(states_BWD)[row_P, word_P][:, None]
        scores_PK1W = self.score.all_pairs(predicate_P1E, self.argument(states_BWD)[row_P])
        return scores_PK1W[:, :, 0].transpose(1, 2)


class StructureHeads(nn.Module):
    """The heads side by side; each is called by itself, and one that no objective reaches can be frozen by its name.

    Attributes:
        arcs, relations, roles: see ArcHead, RelationHead, RoleHead.
        node_types, chart_items: linear, float [B, W, D] to a score for each class.
        predicates: linear, float [B, W, D] to the log-odds [B, W, 1] of a word being a predicate.
        word_labels: by kind of label (labels.WORD_LABEL_KINDS) a linear head, where the model has one.
    """

    def __init__(self, d_model: int, config: HeadsConfig) -> None:
        super().__init__()
        self.arcs = ArcHead(d_model, config.arc_width, config.dropout)
        self.relations = RelationHead(d_model, config.relation_width, config.n_relations, config.dropout)
        self.node_types = _classifier(d_model, config.n_node_types, config.dropout)
        self.predicates = _classifier(d_model, 1, config.dropout)
        self.roles = RoleHead(d_model, config.role_width, config.n_roles, config.dropout)
        self.chart_items = _classifier(d_model, config.n_chart_items, config.dropout)
        self.word_labels = nn.ModuleDict(
            {kind: _classifier(d_model, count, config.dropout) for kind, count in config.n_word_labels.items()}
        )


def _classifier(d_model: int, n_classes: int, dropout: float) -> nn.Module:
    return nn.Sequential(nn.Dropout(dropout), nn.Linear(d_model, n_classes))

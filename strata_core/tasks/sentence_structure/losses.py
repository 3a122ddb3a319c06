"""The losses over the word states of annotated sentences, as sums.

Shapes: B sentences, W words, D model width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from torch import Tensor, nn

from strata_core.evaluation.word_labels import LOSS_OF_KIND
from strata_core.models.structure_heads import NONE_ROLE, StructureHeads
from strata_core.objectives.structure import class_loss, core_role_loss, predicate_loss, role_loss
from strata_core.recipes.lm import STRUCTURE_WEIGHTS
from strata_core.training.task import Batch


def loss_name(weight: str) -> str:
    """The name of a weight's loss; weights are named by their keys below "objective."."""
    return "node_type" if weight == "ud.node_type" else weight.replace(".", "_")


LOSS_OF_WEIGHT = {weight: loss_name(weight) for weight in STRUCTURE_WEIGHTS}
"""For each weight of STRUCTURE_WEIGHTS the name of its loss."""

WORD_LOSSES = frozenset(
    (
        *("ud_arc", "ud_relation", "node_type", "srl_predicate", "srl_role", "srl_core_role", "graph_object_aux"),
        *LOSS_OF_KIND.values(),
    )
)
"""The losses over the word states that model.heads.reads names; chart items of the scheme "reduce-count" are read off
the causal pass in any case."""


def structure_losses(
    heads: StructureHeads,
    states_BWD: Tensor | None,
    chart_states_BWD: Tensor | None,
    batch: Batch,
    *,
    names: Collection[str],
    none_weight: float,
    core_roles: Sequence[int],
) -> dict[str, Tensor]:
    """The losses asked for, float32 scalars.

    Args:
        heads: the model's heads.
        states_BWD: float, of the pass that the heads read; None where no loss asks for them.
        chart_states_BWD: float, those that chart items are read off; None likewise.
        batch: `sentence_tensors.label_tensors`.
        names: of losses; those of other data are passed over.
        none_weight: of the class NONE_ROLE.
        core_roles: classes of the role head.
    """
    losses: dict[str, Callable[[], Tensor]] = {
        "chart_type": lambda: class_loss(heads.chart_items(chart_states_BWD), batch["chart_items"])
    }
    if states_BWD is not None:
        losses |= {
            # NO_LABEL is negative and heads count from 0, the root, so that a head is its own class.
            "ud_arc": lambda: class_loss(heads.arcs(states_BWD, batch["real"]), batch["heads"]),
            "ud_relation": lambda: class_loss(heads.relations(states_BWD, batch["heads"]), batch["relations"]),
            "node_type": lambda: class_loss(heads.node_types(states_BWD), batch["node_types"]),
            "srl_predicate": lambda: predicate_loss(heads.predicates(states_BWD)[..., 0], batch["predicate_labels"]),
        }
        for kind, head in heads.word_labels.items():
            losses[LOSS_OF_KIND[kind]] = partial(_word_label_loss, head, states_BWD, batch[kind])
    found = {name: losses[name]() for name in names if name in losses}
    if {"srl_role", "srl_core_role"} & set(names):
        scores_PWK = heads.roles(states_BWD, batch["predicates"])
        if "srl_role" in names:
            found["srl_role"] = role_loss(scores_PWK, batch["roles"], none_role=NONE_ROLE, none_weight=none_weight)
        if "srl_core_role" in names:
            found["srl_core_role"] = core_role_loss(scores_PWK, batch["roles"], core_roles)
    return found


def _word_label_loss(head: nn.Module, states_BWD: Tensor, labels_BW: Tensor) -> Tensor:
    return class_loss(head(states_BWD), labels_BW)

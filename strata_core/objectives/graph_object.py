"""What a swap of roles in the graph object must do, as sums over examples.

The same-topology counterfactual itself is `role_edit.follow_loss` on odds that were scored with the learned memory's
readback off (`readback.graph_object_alone`); the types of slots are learned by `structure.class_loss`.

Shapes: E examples.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from strata_core.objectives.role_edit import movement_loss


def stability_loss(original_E: Tensor, edited_E: Tensor, margin: float) -> Tensor:
    """The sum of max(0, margin - sign(original) * edited): unrelated probes answer as they did before the edit.

    The answer before is what to keep to, so it gets no gradient. Counts examples.

    Args:
        original_E: odds of each unrelated probe under the graph as it is.
        edited_E: under the edited one.
        margin: in nats.
    """
    return F.relu(margin - original_E.detach().sign() * edited_E).sum()


def null_loss(original_E: Tensor, edited_E: Tensor) -> Tensor:
    """The sum of |edited - original|: under untyped or random objects the edit has no effect. Counts examples."""
    return movement_loss(original_E, edited_E)

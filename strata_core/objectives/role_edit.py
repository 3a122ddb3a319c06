"""What an edit of roles must do to the model's answers, and what it must not, as sums over examples or tokens.

A probe is a question with two continuations: the one that is right under the roles as they are, and the one that is
right once ARG0 and ARG1 are swapped. Its odds are log p(right as they are) - log p(right once swapped), in nats.

Shapes: E examples, N tokens or examples, ... any leading axes, D model width, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from strata_core.objectives.next_token import IGNORED


def token_log_probabilities(states: Tensor, weight_VD: Tensor, labels: Tensor) -> Tensor:
    """log softmax(states @ weight.T)[label], [...], float32 (float64 for float64 states); 0 where IGNORED.

    Summed over a continuation's tokens it is the continuation's. Unlike `next_token_nats` it has derivatives, and it
    holds the scores of all positions given: give it those that matter.

    Args:
        states: float [..., D].
        weight_VD: float.
        labels: int64 [...] in [0, V), or IGNORED.
    """
    scores = states @ weight_VD.T
    log_probabilities = scores.log_softmax(dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    counted = labels != IGNORED
    chosen = log_probabilities.gather(-1, torch.where(counted, labels, 0)[..., None])[..., 0]
    return torch.where(counted, chosen, 0.0)


def follow_loss(original_E: Tensor, edited_E: Tensor, margin: float) -> Tensor:
    """The sum of max(0, margin - original) + max(0, margin + edited): the right continuation wins under each graph.

    A hinge, so that an answer that wins by the margin is pushed no further. Counts examples.

    Args:
        original_E: odds of each probe under the roles as they are.
        edited_E: under the swapped ones.
        margin: in nats.
    """
    return (F.relu(margin - original_E) + F.relu(margin + edited_E)).sum()


def movement_loss(original_N: Tensor, edited_N: Tensor, tolerance: float = 0.0) -> Tensor:
    """The sum of max(0, |edited - original| - tolerance): an edit has no effect here, or one within the tolerance.

    Counts examples: for specificity, odds of a probe without an edit and under one of another predicate. Counts
    tokens: for scope, log-probabilities of the tokens outside the probe (`token_log_probabilities`; IGNORED ones never
    move).
    """
    return F.relu((edited_N - original_N).abs() - tolerance).sum()

"""Which positions see which: one plan for each pass, shared by every block of a transformer.

Shapes: B batch, L positions, H query heads, K key and value heads, E width of a head, D model width.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.models.rotary import Rotation, rotate


@dataclass(frozen=True)
class AttentionPlan:
    """What a query may read.

    Attributes:
        causal: no position reads a later one.
        allowed_B1LL: bool, True where the query (third axis) may read the key (last axis), the causal rule included.
            None: only `causal` restricts the reading, which keeps the kernels' fast path.
        addend_B1LL: the same as 0 and -inf, in the dtype of the scores; see `with_addend`.
    """

    causal: bool
    allowed_B1LL: Tensor | None = None
    addend_B1LL: Tensor | None = None

    def with_addend(self, dtype: torch.dtype) -> AttentionPlan:
        """The plan with its addend made, once for all blocks: each would make and keep its own from `allowed_B1LL`."""
        if self.allowed_B1LL is None or self.addend_B1LL is not None:
            return self
        addend_B1LL = torch.zeros(self.allowed_B1LL.shape, dtype=dtype, device=self.allowed_B1LL.device)
        addend_B1LL = addend_B1LL.masked_fill_(~self.allowed_B1LL, -torch.inf)
        return dataclasses.replace(self, addend_B1LL=addend_B1LL)


def plan_attention(*, causal: bool, real_BL: Tensor | None = None, document_BL: Tensor | None = None) -> AttentionPlan:
    """The plan of a pass: causal (language modelling) or full (a whole annotated sentence at once).

    A position always reads itself, so that a padded row stays finite; nobody else reads padding.

    Args:
        causal: whether later positions are hidden.
        real_BL: bool, False at padding; None where there is no padding.
        document_BL: integers, equal within a document (see `document_ids`); None: one document a row.
    """
    known = real_BL if real_BL is not None else document_BL
    if known is None:
        return AttentionPlan(causal)
    length = known.shape[1]
    itself_LL = torch.eye(length, dtype=torch.bool, device=known.device)
    allowed_BLL = torch.ones_like(itself_LL).expand(known.shape[0], length, length)
    if causal:
        allowed_BLL = allowed_BLL.tril()
    if real_BL is not None:
        allowed_BLL = allowed_BLL & real_BL[:, None, :]
    if document_BL is not None:
        allowed_BLL = allowed_BLL & (document_BL[:, :, None] == document_BL[:, None, :])
    return AttentionPlan(causal, (allowed_BLL | itself_LL)[:, None])


def document_ids(tokens_BL: Tensor, end_of_text_id: int) -> Tensor:
    """int64 [B, L]: 0, 1, ... along a row; an end-of-text token belongs to the document it ends."""
    ends_BL = (tokens_BL == end_of_text_id).to(torch.int64)
    return ends_BL.cumsum(dim=1) - ends_BL


class Attention(nn.Module):
    """Grouped-query attention (Ainslie et al. 2023) with rotary positions and no biases."""

    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int) -> None:
        super().__init__()
        self.head_width = d_model // n_heads
        self.query = nn.Linear(d_model, n_heads * self.head_width, bias=False)
        self.key = nn.Linear(d_model, n_kv_heads * self.head_width, bias=False)
        self.value = nn.Linear(d_model, n_kv_heads * self.head_width, bias=False)
        self.output = nn.Linear(n_heads * self.head_width, d_model, bias=False)

    def forward(self, states_BLD: Tensor, plan: AttentionPlan, rotation: Rotation) -> Tensor:
        """What each position reads, float [B, L, D]."""
        query_BLHE = rotate(self._heads(self.query(states_BLD)), rotation)
        key_BLKE = rotate(self._heads(self.key(states_BLD)), rotation)
        value_BLKE = self._heads(self.value(states_BLD))
        mask_B1LL = plan.allowed_B1LL if plan.addend_B1LL is None else plan.addend_B1LL
        grouped = key_BLKE.shape[2] != query_BLHE.shape[2]
        if grouped and mask_B1LL is not None:
            # CUDA's fused kernels take a mask or shared heads, not both.
            group = query_BLHE.shape[2] // key_BLKE.shape[2]
            key_BLKE, value_BLKE = (heads.repeat_interleave(group, dim=2) for heads in (key_BLKE, value_BLKE))
            grouped = False
        read_BHLE = F.scaled_dot_product_attention(
            query_BLHE.transpose(1, 2),
            key_BLKE.transpose(1, 2),
            value_BLKE.transpose(1, 2),
            attn_mask=mask_B1LL,
            is_causal=plan.causal and mask_B1LL is None,
            enable_gqa=grouped,
        )
        return self.output(read_BHLE.transpose(1, 2).flatten(2))

    def _heads(self, flat_BLX: Tensor) -> Tensor:
        return flat_BLX.unflatten(-1, (-1, self.head_width))

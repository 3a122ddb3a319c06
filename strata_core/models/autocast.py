"""What autocast does to a product, for code that has to know before it multiplies."""

from __future__ import annotations

import torch
from torch import Tensor


def product_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype in which a matrix product of this tensor is computed here and now."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype

"""AdamW over parameter groups, with its state keyed by parameter name."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from strata_core.errors import DataError
from strata_core.recipes.lm import OptimizerTable

MOMENTS = ("exp_avg", "exp_avg_sq", "step")
"""The state AdamW keeps for each parameter: two moments of the parameter's shape and a count of applied updates."""


def trainable_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that training changes, by name; a shared one once."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def decays(name: str, parameter: Tensor) -> bool:
    """Whether weight decay applies: to tensors of two or more dimensions, but not to thresholds and scales."""
    leaf = name.rsplit(".", 1)[-1]
    return parameter.ndim >= 2 and "threshold" not in leaf and "scale" not in leaf


def build_optimizer(parameters: Mapping[str, nn.Parameter], table: OptimizerTable) -> torch.optim.AdamW:
    """Fused AdamW (Loshchilov and Hutter 2019) with a decaying and a non-decaying group.

    The fused kernels take `found_inf`, which lets a skipped update be decided on the device.
    """
    decaying = [parameter for name, parameter in parameters.items() if decays(name, parameter)]
    others = [parameter for name, parameter in parameters.items() if not decays(name, parameter)]
    groups = [
        {"params": decaying, "weight_decay": table.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=table.lr,
        betas=(table.beta1, table.beta2),
        eps=table.eps,
        fused=True,
    )


def optimizer_state(optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """The live state tensors as `<parameter>.<moment>`; parameters that were never updated have none."""
    return {
        f"{name}.{moment}": optimizer.state[parameter][moment]
        for name, parameter in parameters.items()
        if parameter in optimizer.state
        for moment in MOMENTS
    }


def load_optimizer_state(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter], state: Mapping[str, Tensor]
) -> None:
    """Takes over saved state, parameter by parameter.

    A parameter without saved state (frozen when it was saved) starts afresh; state of parameters that are frozen now is
    left aside.

    Raises:
        DataError: a moment has another shape than its parameter.
    """
    for name, parameter in parameters.items():
        if f"{name}.exp_avg" not in state:
            continue
        loaded = {}
        for moment in MOMENTS:
            tensor = state[f"{name}.{moment}"]
            expected = torch.Size([]) if moment == "step" else parameter.shape
            if tensor.shape != expected:
                raise DataError(
                    f"optimizer state {name}.{moment} has shape {list(tensor.shape)}, "
                    f"its parameter wants {list(expected)}"
                )
            loaded[moment] = tensor.to(parameter.device, torch.float32, copy=True)
        optimizer.state[parameter] = loaded

"""AdamW over parameter groups, with its state keyed by parameter name."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from strata_core.errors import DataError
from strata_core.recipes.tables import OptimizerTable

MOMENTS = ("exp_avg", "exp_avg_sq", "step")
"""The state AdamW keeps for each parameter: two moments of the parameter's shape and a count of applied updates."""


def trainable_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that training changes, by name; a shared one once."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def decays(name: str, parameter: Tensor) -> bool:
    """Whether weight decay applies: to tensors of two or more dimensions, but not to thresholds and scales."""
    leaf = name.rsplit(".", 1)[-1]
    return parameter.ndim >= 2 and "threshold" not in leaf and "scale" not in leaf


def build_optimizer(
    parameters: Mapping[str, nn.Parameter], table: OptimizerTable, rate_factors: Mapping[str, float] | None = None
) -> torch.optim.AdamW:
    """Fused AdamW (Loshchilov and Hutter 2019), in groups that share weight decay and the factor on their rate.

    The fused kernels take `found_inf`, which lets a skipped update be decided on the device.

    Args:
        parameters: what is trained, by name.
        table: the recipe's settings.
        rate_factors: by the prefix of a parameter's name, what its learning rate is multiplied by; 1 for others.
    """
    members: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in parameters.items():
        decay = table.weight_decay if decays(name, parameter) else 0.0
        factor = next((value for prefix, value in (rate_factors or {}).items() if name.startswith(prefix)), 1.0)
        members.setdefault((factor, decay), []).append(parameter)
    groups = [
        {"params": members[key], "rate_factor": key[0], "weight_decay": key[1]} for key in sorted(members, reverse=True)
    ]
    return torch.optim.AdamW(groups, lr=table.lr, betas=(table.beta1, table.beta2), eps=table.eps, fused=True)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Sets the learning rate of the coming update, times each group's own factor."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["rate_factor"]


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

"""First values of parameters, a pure function of the seed and each parameter's name."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from strata_core.randomness import derive_seed

INITIAL_STD = 0.02
"""Standard deviation of a matrix for which no module asks another (GPT-2)."""


@runtime_checkable
class NamesInitialStds(Protocol):
    """A module that asks for other standard deviations."""

    def initial_stds(self) -> dict[str, float]:
        """By parameter name relative to the module; 0.0 starts the parameter at zero."""


@runtime_checkable
class FinishesInitialValues(Protocol):
    """A module in which some parameters start as no normal draw."""

    def finish_initial_values(self) -> None:
        """Called without gradient once all parameters are drawn; sets the module's own as a function of these."""


@torch.no_grad()
def initialise(model: nn.Module, seed: int) -> None:
    """Sets every parameter: matrices normal, scales of norms one, other vectors zero.

    Each parameter is drawn by its own generator, on the host and in float32, so that neither another
    module nor another device changes its values. Modules may ask for other deviations (see NamesInitialStds) and for
    other values (see FinishesInitialValues).
    """
    stds: dict[str, float] = {}
    for prefix, module in model.named_modules():
        if isinstance(module, NamesInitialStds):
            stds |= {f"{prefix}.{name}".lstrip("."): std for name, std in module.initial_stds().items()}
    for name, parameter in model.named_parameters():
        parameter.copy_(_first_values(name, parameter, stds.get(name), seed))
    for module in model.modules():
        if isinstance(module, FinishesInitialValues):
            module.finish_initial_values()


def _first_values(name: str, parameter: Tensor, std: float | None, seed: int) -> Tensor:
    values = torch.zeros(parameter.shape, dtype=torch.float32, device="cpu")
    if std is None and parameter.ndim < 2:
        return values.fill_(1.0) if name.endswith("weight") else values
    if std is None:
        std = INITIAL_STD
    generator = torch.Generator().manual_seed(derive_seed(seed, f"init:{name}"))
    return values.normal_(0.0, std, generator=generator)

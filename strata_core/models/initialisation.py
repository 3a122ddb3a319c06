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
class NamesInitialIdentities(Protocol):
    """A module in which some square matrices start as the identity: what they pass on keeps its meaning."""

    def initial_identities(self) -> tuple[str, ...]:
        """Parameter names relative to the module."""


@runtime_checkable
class NamesInitialTransposes(Protocol):
    """A module in which some matrices start as the transpose of others: they lead back to where these came from."""

    def initial_transposes(self) -> dict[str, str]:
        """For each such parameter the other one, names relative to the module."""


@torch.no_grad()
def initialise(model: nn.Module, seed: int) -> None:
    """Sets every parameter: matrices normal, the identity or a transpose, scales of norms one, other vectors zero.

    Each parameter is drawn by its own generator, on the host and in float32, so that neither another
    module nor another device changes its values. Modules may ask for other deviations (see NamesInitialStds).
    """
    stds: dict[str, float] = {}
    identities: set[str] = set()
    transposes: dict[str, str] = {}
    for prefix, module in model.named_modules():
        if isinstance(module, NamesInitialStds):
            stds |= {f"{prefix}.{name}".lstrip("."): std for name, std in module.initial_stds().items()}
        if isinstance(module, NamesInitialIdentities):
            identities |= {f"{prefix}.{name}".lstrip(".") for name in module.initial_identities()}
        if isinstance(module, NamesInitialTransposes):
            transposes |= {
                f"{prefix}.{name}".lstrip("."): f"{prefix}.{other}".lstrip(".")
                for name, other in module.initial_transposes().items()
            }
    for name, parameter in model.named_parameters():
        if name in identities:
            nn.init.eye_(parameter)
            continue
        parameter.copy_(_first_values(name, parameter, stds.get(name), seed))
    for name, other in transposes.items():
        model.get_parameter(name).copy_(model.get_parameter(other).T)


def _first_values(name: str, parameter: Tensor, std: float | None, seed: int) -> Tensor:
    values = torch.zeros(parameter.shape, dtype=torch.float32, device="cpu")
    if std is None and parameter.ndim < 2:
        return values.fill_(1.0) if name.endswith("weight") else values
    if std is None:
        std = INITIAL_STD
    generator = torch.Generator().manual_seed(derive_seed(seed, f"init:{name}"))
    return values.normal_(0.0, std, generator=generator)

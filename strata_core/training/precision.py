"""Which precision a run computes in, and the loss scale that fp16 needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Precision:
    """The precision obtained. Weights, gradients and moments are float32 in every case.

    Attributes:
        asked: what the recipe asks for.
        effective: what is used: "bf16", "fp16" or "fp32".
        reason: why the two differ, None where they do not.
    """

    asked: str
    effective: str
    reason: str | None = None

    @property
    def autocast_dtype(self) -> torch.dtype | None:
        """The dtype of matrix products under autocast, None without autocast."""
        return _DTYPES.get(self.effective)

    def autocast(self, device: torch.device) -> Callable[[], AbstractContextManager[Any]]:
        """A factory of the context that forward passes run in."""
        if self.autocast_dtype is None:
            return nullcontext
        return lambda: torch.autocast(device.type, dtype=self.autocast_dtype)


def choose_precision(asked: str, device: torch.device, *, force: bool) -> Precision:
    """Autocast on CUDA only, unless forced: CPUs and MPS compute in float32.

    A CPU without bf16 units emulates low precision (measured: 60 times slower), so it is not a silent default.
    """
    if asked == "fp32" or device.type == "cuda" or force:
        return Precision(asked, asked)
    reason = f"{asked} is used on CUDA only (elsewhere it can be far slower); run.force_precision = true insists on it"
    return Precision(asked, "fp32", reason)


class LossScale:
    """A dynamic loss scale (Micikevicius et al. 2018): halved after an overflow, doubled after 2000 good steps.

    Lives on the device and never waits for it. Without fp16 the scale is 1 and stays.
    """

    growth_interval_steps = 2000

    def __init__(self, device: torch.device, *, initial: float, enabled: bool) -> None:
        self.enabled = enabled
        self.scale = torch.tensor(initial if enabled else 1.0, device=device)
        self._good_steps = torch.zeros((), device=device)

    def unscale(self, gradients: list[Tensor]) -> None:
        """Divides the gradients by the scale, in place."""
        if self.enabled:
            torch._foreach_mul_(gradients, self.scale.reciprocal())

    def may_explain(self) -> Tensor:
        """Whether a non-finite gradient may be an overflow that a smaller scale cures; bool scalar."""
        if not self.enabled:
            return torch.zeros((), dtype=torch.bool, device=self.scale.device)
        return self.scale > 1.0

    def update(self, finite: Tensor) -> None:
        """Adapts the scale to whether the step's gradients were finite (bool scalar)."""
        if not self.enabled:
            return
        self._good_steps = torch.where(finite, self._good_steps + 1, 0.0)
        grown = self._good_steps >= self.growth_interval_steps
        halved = torch.clamp(self.scale * 0.5, min=1.0)
        self.scale = torch.where(finite, torch.where(grown, self.scale * 2.0, self.scale), halved)
        self._good_steps = torch.where(grown, 0.0, self._good_steps)

    def state(self) -> dict[str, float]:
        """For trainer.json."""
        return {"scale": self.scale.item(), "good_steps": self._good_steps.item()}

    def load(self, state: dict[str, float]) -> None:
        """Takes over what `state` gave."""
        if self.enabled:
            self.scale.fill_(state["scale"])
            self._good_steps.fill_(state["good_steps"])

"""Guards against updates that would harm: non-finite gradients, and norms far above the recent ones.

Decisions are made on the device, so that nothing waits for it between log steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

HISTORY_LENGTH = 200
"""How many norms of applied updates the median is taken over."""

APPLIED_BEFORE_SPIKES_COUNT = 50
"""How many updates must have been applied before a spike is looked for."""


class UpdateGuard:
    """Says of each update whether to skip it, and counts.

    Args:
        device: where gradient norms live.
        spike_factor: an update whose unclipped norm exceeds this factor times the median of the last 200 applied
            ones is skipped, once 50 have been applied; None: never.
        nonfinite_limit: after so many consecutive non-finite updates every further one is skipped too, and
            `halted` is set.
    """

    def __init__(self, device: torch.device, *, spike_factor: float | None, nonfinite_limit: int) -> None:
        self._spike_factor = spike_factor
        self._nonfinite_limit = nonfinite_limit
        self._norms = torch.zeros(HISTORY_LENGTH, device=device)
        self._slots = torch.arange(HISTORY_LENGTH, device=device)
        self.applied = torch.zeros((), dtype=torch.long, device=device)
        self.spikes = torch.zeros((), dtype=torch.long, device=device)
        self.nonfinite = torch.zeros((), dtype=torch.long, device=device)
        self.consecutive_nonfinite = torch.zeros((), dtype=torch.long, device=device)

    def skip(self, norm: Tensor, finite: Tensor, excused: Tensor) -> Tensor:
        """Decides on one update and counts it.

        Args:
            norm: the unclipped global gradient norm, float32 scalar.
            finite: whether loss and gradient are finite, bool scalar.
            excused: whether a non-finite gradient is an overflow of the loss scale, bool scalar; such an update is
                skipped but does not count towards the limit.

        Returns:
            1.0 where the update must be skipped, else 0.0; float32 scalar (the form that fused optimizers take).
        """
        halted = self.halted
        spike = finite & self._is_spike(norm) & ~halted
        apply = finite & ~spike & ~halted
        self.spikes += spike
        self.nonfinite += ~finite
        counted = ~finite & ~excused
        unbroken = self.consecutive_nonfinite
        streak = torch.where(counted, unbroken + 1, torch.where(finite, 0, unbroken))
        self.consecutive_nonfinite = torch.where(halted, unbroken, streak)
        slot = self.applied % HISTORY_LENGTH
        self._norms = torch.where((self._slots == slot) & apply, norm, self._norms)
        self.applied += apply
        return (~apply).float()

    @property
    def halted(self) -> Tensor:
        """Whether the limit of consecutive non-finite updates is reached, bool scalar."""
        return self.consecutive_nonfinite >= self._nonfinite_limit

    def _is_spike(self, norm: Tensor) -> Tensor:
        if self._spike_factor is None:
            return torch.zeros((), dtype=torch.bool, device=norm.device)
        filled = torch.clamp(self.applied, max=HISTORY_LENGTH)
        ordered = torch.where(self._slots < filled, self._norms, torch.inf).sort().values
        middle = torch.stack([(filled - 1).clamp(min=0) // 2, filled // 2])
        median = ordered.gather(0, middle).mean()
        return (self.applied >= APPLIED_BEFORE_SPIKES_COUNT) & (norm > self._spike_factor * median)

    def state(self) -> dict[str, Any]:
        """For trainer.json; the norms in the order of their slots."""
        filled = min(int(self.applied), HISTORY_LENGTH)
        return {
            "applied": int(self.applied),
            "spikes": int(self.spikes),
            "nonfinite": int(self.nonfinite),
            "consecutive_nonfinite": int(self.consecutive_nonfinite),
            "norms": self._norms[:filled].tolist(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Takes over what `state` gave."""
        norms = torch.tensor(state["norms"], dtype=self._norms.dtype, device=self._norms.device)
        self._norms[: len(norms)] = norms
        self.applied.fill_(state["applied"])
        self.spikes.fill_(state["spikes"])
        self.nonfinite.fill_(state["nonfinite"])
        self.consecutive_nonfinite.fill_(state["consecutive_nonfinite"])

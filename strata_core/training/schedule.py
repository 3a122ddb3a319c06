"""The learning rate of each step: linear warm-up, then a cosine to the final rate."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CosineSchedule:
    """Linear warm-up to `peak` over `warmup_steps`, then half a cosine that reaches `final` at the last step.

    Counted in optimizer steps, so it does not depend on accumulation. Steps beyond `total_steps` stay at `final`.
    A skipped update advances the schedule as an applied one does.
    """

    peak: float
    final: float
    warmup_steps: int
    total_steps: int

    def rate(self, step: int) -> float:
        """The rate of step number `step`, counted from 0."""
        if step < self.warmup_steps:
            return self.peak * (step + 1) / self.warmup_steps
        top = max(self.warmup_steps - 1, 0)
        last = self.total_steps - 1
        if step >= last:
            return self.final if last > top else self.peak
        fraction = (step - top) / (last - top)
        return self.final + 0.5 * (self.peak - self.final) * (1.0 + math.cos(math.pi * fraction))

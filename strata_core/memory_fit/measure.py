"""What a run took, beside what was predicted."""

from __future__ import annotations

import torch

from strata_core.memory_fit.plan import MemoryPlan
from strata_core.training.memory import peak_bytes


def predicted_and_measured(plan: MemoryPlan, device: torch.device) -> dict[str, int]:
    """ "predicted_bytes" and "measured_bytes" of this process so far, two figures of the same kind.

    On CUDA both are the tensor allocator's peak; elsewhere the largest resident size of the whole process.
    """
    predicted = plan.allocator_peak_bytes if device.type == "cuda" else plan.predicted_peak_bytes
    return {"predicted_bytes": predicted, "measured_bytes": peak_bytes(device)}

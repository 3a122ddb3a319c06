"""How much memory a process has used at most."""

from __future__ import annotations

import resource
import sys

import psutil
import torch


def peak_bytes(device: torch.device) -> int:
    """On CUDA the allocator's peak on the device; elsewhere the largest resident size of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """The resident size of this process now."""
    return int(psutil.Process().memory_info().rss)

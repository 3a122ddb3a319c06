"""Predicted peak memory of a run on a device, before anything starts.

`prediction.predict_memory` makes a `MemoryPlan`; what is exported here loads no torch.
"""

from strata_core.memory_fit.plan import MemoryPlan, Remedy, require_fit
from strata_core.memory_fit.sizes import format_bytes, parse_bytes

__all__ = ["MemoryPlan", "Remedy", "format_bytes", "parse_bytes", "require_fit"]

"""What a rank's process takes besides the tensors of a training step."""

from __future__ import annotations

from collections.abc import Mapping

_MIB = 2**20

_PROCESS_BYTES = 352 * _MIB
"""CPU: interpreter, torch and the other libraries of a rank, as resident in a run with hardly any tensors."""

_HEAP_SHARES = {"none": 0.6, "blocks": 1.6}
"""CPU: what glibc's heap holds beyond the tensors, as a share of them, by memory.recompute.

Freed blocks stay in the heap (`training.allocator`), and their holes are reused in part only, the worse the more sizes
come and go. Chosen so that the whole process stayed below the prediction in every run measured (glibc 2.36): beyond
what it held after import, up to 0.64 and 1.53.
"""

_VARYING_BYTES = 64 * _MIB
_VARYING_HEAP_SHARE = 3.6
"""CPU: the same where batches differ in size from step to step, and what comes on top whatever the tensors are: maps of
structure and graphs that were read, and holes of many sizes. A long run of lm/parse came close, others did not."""

_CUDA_CONTEXT_BYTES = 640 * _MIB
"""CUDA: context and kernels, which the driver takes outside torch's allocator."""

_CUDA_WORKSPACE_BYTES = 32 * _MIB
"""CUDA: cuBLAS's workspace, which torch allocates once (the default on Hopper, and what deterministic runs ask for)."""

_CUDA_FRAGMENTATION_SHARE = 0.03
"""CUDA: what the caching allocator reserves and cannot use."""

_MPS_PROCESS_BYTES = 512 * _MIB


def process_parts(
    device_type: str,
    tensor_parts: Mapping[str, int],
    checkpoint_bytes: int,
    *,
    recompute: str,
    shapes_vary: bool = False,
) -> dict[str, int]:
    """The parts "workspace", "snapshot" and "overhead" of a plan, in bytes.

    The copy of a checkpoint lies in host memory, so it counts where that is the device's: there the memory of a step,
    once freed, stays with the process, and the copy comes on top of it.
    """
    tensor_bytes = sum(tensor_parts.values())
    if device_type == "cuda":
        overhead_bytes = _CUDA_CONTEXT_BYTES + int(tensor_bytes * _CUDA_FRAGMENTATION_SHARE)
        return {"workspace": _CUDA_WORKSPACE_BYTES, "snapshot": 0, "overhead": overhead_bytes}
    if device_type == "mps":
        return {"workspace": 0, "snapshot": checkpoint_bytes, "overhead": _MPS_PROCESS_BYTES}
    share, base_bytes = _HEAP_SHARES[recompute], _PROCESS_BYTES
    if shapes_vary:
        share, base_bytes = max(share, _VARYING_HEAP_SHARE), base_bytes + _VARYING_BYTES
    overhead_bytes = base_bytes + int(tensor_bytes * share)
    return {"workspace": 0, "snapshot": checkpoint_bytes, "overhead": overhead_bytes}

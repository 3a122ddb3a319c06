"""What a rank's process takes besides the tensors of a training step."""

from __future__ import annotations

from collections.abc import Mapping

_MIB = 2**20

_PROCESS_BYTES = 352 * _MIB
"""CPU: interpreter, torch and the other libraries of a rank, as resident in a run with hardly any tensors."""

_AFTER_PLANNING_BYTES = 112 * _MIB
"""CPU: what of `_PROCESS_BYTES` comes after the plan is made: what following a step imports, and the run's own code."""

HELD_THROUGHOUT = ("weights", "optimizer")
"""The parts of a plan that no operation takes or frees."""

_HEAP_SHARES = {("none", False): 0.8, ("none", True): 1.3, ("blocks", False): 2.5, ("blocks", True): 3.2}
"""CPU: what glibc's heap holds beyond the tensors, as a share of those that come and go, by memory.recompute and by
whether a step has several micro-batches on a rank.

Freed blocks stay in the heap (`training.allocator`). An aligned block does not fit into the hole that one of its own
size left, and small objects that live on keep holes from growing together; so a second micro-batch takes new room,
and so do sizes that come and go. Chosen so that the whole process stayed below the prediction in every run measured
(glibc 2.36): beyond what it held after import, up to 0.53, 1.25, 2.39 and 3.12 in runs of five steps; over 300 steps
holes of different steps add up, to 0.76 in the first case (the others were not measured for so long).
"""

_VARYING_BYTES = 64 * _MIB
_VARYING_HEAP_SHARE = 3.6
"""CPU: where batches differ in size from step to step, the same as a share of all tensors, and what comes on top
whatever they are: maps of structure and graphs that were read, and holes of many sizes. A long run of lm/parse came
close, others did not."""

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
    accumulates: bool,
    shapes_vary: bool = False,
    resident_bytes: int = 0,
) -> dict[str, int]:
    """The parts "workspace", "snapshot" and "overhead" of a plan, in bytes.

    The copy of a checkpoint lies in host memory, so it counts where that is the device's: there the memory of a step,
    once freed, stays with the process, and the copy comes on top of it.

    Args:
        device_type: "cpu", "cuda" or "mps".
        tensor_parts: what the tensors of a step take, in bytes by part.
        checkpoint_bytes: the tensors of a checkpoint.
        recompute: the recipe's memory.recompute.
        accumulates: whether a step has several micro-batches on a rank.
        shapes_vary: whether other steps have batches of other sizes.
        resident_bytes: CPU: what the process that will train has resident before the step is followed.
    """
    tensor_bytes = sum(tensor_parts.values())
    if device_type == "cuda":
        overhead_bytes = _CUDA_CONTEXT_BYTES + int(tensor_bytes * _CUDA_FRAGMENTATION_SHARE)
        return {"workspace": _CUDA_WORKSPACE_BYTES, "snapshot": 0, "overhead": overhead_bytes}
    if device_type == "mps":
        return {"workspace": 0, "snapshot": checkpoint_bytes, "overhead": _MPS_PROCESS_BYTES}
    if shapes_vary:
        heap_bytes = _VARYING_BYTES + int(tensor_bytes * _VARYING_HEAP_SHARE)
    else:
        passing_bytes = tensor_bytes - sum(tensor_parts.get(name, 0) for name in HELD_THROUGHOUT)
        heap_bytes = int(passing_bytes * _HEAP_SHARES[recompute, accumulates])
    overhead_bytes = max(_PROCESS_BYTES, resident_bytes + _AFTER_PLANNING_BYTES) + heap_bytes
    return {"workspace": 0, "snapshot": checkpoint_bytes, "overhead": overhead_bytes}

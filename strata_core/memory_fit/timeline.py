"""Records when tensor memory comes and goes, and says what was held at the moment of the peak.

Works on real and on fake tensors. What a kernel takes and returns inside one operation is not seen; on CPUs that is
less than 0.02 % of a training step's peak (benchmarks/memory.py measures it).
"""

from __future__ import annotations

import bisect
import itertools
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

_ASK_DEVICE = torch.ops.prim.device.default
_NO_BACKWARD = -1


@dataclass
class _Allocation:
    """One storage. Times count operations; it is held from `born` to `died` inclusive."""

    size_bytes: int
    born: int
    in_backward: bool
    in_model: bool
    died: int | None = None
    label: str | None = None


class Timeline(TorchDispatchMode):
    """Follows every storage that operations make while it is active.

    Args:
        device_type: storages on other devices are left out.
        granule_bytes: what the device's allocator rounds a size up to.
    """

    def __init__(self, device_type: str, granule_bytes: int = 1) -> None:
        super().__init__()
        self._device_type = device_type
        self._granule_bytes = granule_bytes
        self._now = 0
        self._allocations: list[_Allocation] = []
        self._live: dict[int, tuple[weakref.ref[Any], _Allocation]] = {}
        self._backward_starts: list[int] = []
        self._in_backward = False
        self._in_model = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _ASK_DEVICE and isinstance(args[0], FakeTensor):
            # Autograd and autocast ask fake tensors for their device several times an operation; the long way round
            # would take as much time as the operations themselves.
            return args[0].fake_device
        in_backward = torch._C._current_graph_task_id() != _NO_BACKWARD
        result = func(*args, **(kwargs or {}))
        self._now += 1
        if in_backward and not self._in_backward:
            self._backward_starts.append(self._now)
        self._in_backward = in_backward
        for tensor in _tensors(result):
            self._find(tensor)
        return result

    def label(self, tensors: Iterable[Tensor], label: str) -> None:
        """Says what these tensors are, for `parts_at_peak`; the last label counts, for their whole life."""
        for tensor in tensors:
            if allocation := self._find(tensor):
                allocation.label = label

    def watch_model(self, model: nn.Module) -> None:
        """Tells what the model's forward makes from what the losses make."""
        model.register_forward_pre_hook(lambda *_: self._enter_model(True))
        model.register_forward_hook(lambda *_: self._enter_model(False), always_call=True)

    def _enter_model(self, entered: bool) -> None:
        self._in_model = entered

    def _find(self, tensor: Tensor) -> _Allocation | None:
        device = tensor.fake_device if isinstance(tensor, FakeTensor) else tensor.device
        storage = tensor.untyped_storage()
        size_bytes = -(-storage.nbytes() // self._granule_bytes) * self._granule_bytes
        if device.type != self._device_type or size_bytes == 0:
            return None
        key = id(storage)
        if key not in self._live:
            allocation = _Allocation(size_bytes, self._now, self._in_backward, self._in_model)
            self._allocations.append(allocation)
            self._live[key] = weakref.ref(storage, lambda _: self._forget(key)), allocation
        return self._live[key][1]

    def _forget(self, key: int) -> None:
        _, allocation = self._live.pop(key)
        allocation.died = self._now

    def parts_at_peak(self) -> dict[str, int]:
        """Bytes held at the moment when most was held, by label.

        Storages without a label are "saved_activations" where the model's forward made them and they lived on into
        backward, "logits_and_loss" where forward made them outside the model, and "largest_transient" otherwise.
        """
        peak = self._peak_time()
        parts: dict[str, int] = {}
        for allocation in self._allocations:
            if allocation.born <= peak and (allocation.died is None or peak <= allocation.died):
                name = allocation.label or self._kind(allocation)
                parts[name] = parts.get(name, 0) + allocation.size_bytes
        return parts

    def _peak_time(self) -> int:
        changes = [0] * (self._now + 2)
        for allocation in self._allocations:
            changes[allocation.born] += allocation.size_bytes
            if allocation.died is not None:
                changes[allocation.died + 1] -= allocation.size_bytes
        held = list(itertools.accumulate(changes))
        return held.index(max(held))

    def _kind(self, allocation: _Allocation) -> str:
        if allocation.in_backward:
            return "largest_transient"
        if not allocation.in_model:
            return "logits_and_loss"
        following = bisect.bisect_left(self._backward_starts, allocation.born)
        if following == len(self._backward_starts):
            return "largest_transient"
        lived_on = allocation.died is None or allocation.died >= self._backward_starts[following]
        return "saved_activations" if lived_on else "largest_transient"


def _tensors(result: Any) -> Iterator[Tensor]:
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, list | tuple):
        for item in result:
            yield from _tensors(item)

"""What a run claims, held against what training again gives: tensors bit by bit, JSON values one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ABSENT = "(absent)"


@dataclass(frozen=True)
class Difference:
    """One tensor or value that is not what the run claims.

    Attributes:
        step: the step after which they differ.
        file: the file of the checkpoint or run that holds it.
        name: of the tensor, or the path of the value in its JSON.
        is_tensor: which of the two.
        what: in words.
        claimed, replayed: the two values; None for tensors.
        largest: largest absolute difference of two elements or numbers; None where there is none to tell.
        relative: for a tensor |claimed - replayed| / |replayed - before| in Euclidean norms, where `before` is the
            tensor at the start of the replay: how far off it is, seen from the way that training moves it. For a
            number its relative difference. None where neither makes sense; such a difference is never rounding.
    """

    step: int
    file: str
    name: str
    is_tensor: bool
    what: str
    claimed: Any = None
    replayed: Any = None
    largest: float | None = None
    relative: float | None = None

    def is_within(self, tolerance: float | None) -> bool:
        """Whether it may be due to another order of summation; with None nothing may."""
        return tolerance is not None and self.relative is not None and self.relative <= tolerance

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON values; its name is under "tensor" or under "value"."""
        return {
            "step": self.step,
            "file": self.file,
            "tensor": self.name if self.is_tensor else None,
            "value": None if self.is_tensor else self.name,
            "what": self.what,
            "claimed": self.claimed,
            "replayed": self.replayed,
            "largest_difference": self.largest,
            "relative_difference": self.relative,
        }


def tensor_differences(
    file: str, claimed: Mapping[str, Tensor], replayed: Mapping[str, Tensor], before: Mapping[str, Tensor], *, step: int
) -> Iterator[Difference]:
    """Every tensor of which a bit differs, in the order of `replayed`; one that either side lacks, too.

    Args:
        file: the file they are in.
        claimed: from the run, on the CPU.
        replayed: on any device.
        before: the tensors where the replay began; those not in it count as zero, as moments begin.
        step: the step after which both are.
    """
    for name in [*replayed, *(name for name in claimed if name not in replayed)]:
        if name not in claimed or name not in replayed:
            what = "not in the checkpoint" if name not in claimed else "not what this recipe makes"
            yield Difference(step, file, name, True, what)
            continue
        ours, theirs = replayed[name].detach().cpu(), claimed[name]
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            what = f"is {theirs.dtype} {list(theirs.shape)}, training gives {ours.dtype} {list(ours.shape)}"
            yield Difference(step, file, name, True, what)
        elif not torch.equal(_bytes_of(ours), _bytes_of(theirs)):
            yield _element_difference(file, name, theirs, ours, before.get(name), step)


def _bytes_of(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _element_difference(
    file: str, name: str, claimed: Tensor, replayed: Tensor, before: Tensor | None, step: int
) -> Difference:
    unequal_bytes = _bytes_of(claimed) != _bytes_of(replayed)
    unequal = int(unequal_bytes.view(-1, claimed.element_size()).any(dim=1).sum())
    gap = claimed.double() - replayed.double()
    largest = float(gap.abs().max())
    start = torch.zeros_like(replayed) if before is None else before.detach().cpu()
    way = float(torch.linalg.vector_norm(replayed.double() - start.double()))
    is_counter = name.endswith(".step") and claimed.ndim == 0
    relative = None if way == 0 or is_counter else float(torch.linalg.vector_norm(gap)) / way
    return Difference(
        step,
        file,
        name,
        True,
        f"{unequal:,} of {claimed.numel():,} elements differ",
        largest=largest if math.isfinite(largest) else None,
        relative=relative if relative is not None and math.isfinite(relative) else None,
    )


def value_differences(file: str, claimed: Any, replayed: Any, *, step: int) -> Iterator[Difference]:
    """Every value in two JSON documents that differs, with its path: `guard.norms[3]`."""
    for name, theirs, ours in _unequal(claimed, replayed, ""):
        largest = relative = None
        if isinstance(theirs, float) and isinstance(ours, float):
            largest = abs(theirs - ours)
            relative = largest / max(abs(theirs), abs(ours))
        yield Difference(step, file, name, False, "differs", theirs, ours, largest, relative)


def _unequal(claimed: Any, replayed: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(claimed, Mapping) and isinstance(replayed, Mapping):
        for key in sorted({*claimed, *replayed}):
            inner = f"{name}.{key}" if name else key
            yield from _unequal(claimed.get(key, ABSENT), replayed.get(key, ABSENT), inner)
    elif isinstance(claimed, list) and isinstance(replayed, list) and len(claimed) == len(replayed):
        for index, (theirs, ours) in enumerate(zip(claimed, replayed, strict=True)):
            yield from _unequal(theirs, ours, f"{name}[{index}]")
    elif type(claimed) is not type(replayed) or claimed != replayed:
        yield name, claimed, replayed


def record_differences(
    file: str, claimed: Iterable[Mapping[str, Any]], replayed: Iterable[Mapping[str, Any]], steps: range
) -> Iterator[Difference]:
    """Every value in the records of these steps that the run has otherwise than the replay; `timing` does not count.

    A step that the run has no record of is passed over: how often it logs may have changed.
    """
    by_step = {record["step"]: record for record in replayed}
    for record in claimed:
        step = record.get("step") if isinstance(record, Mapping) else None
        if isinstance(step, int) and step in steps:
            ours = by_step.get(step, {})
            yield from value_differences(file, _without_timing(record), _without_timing(ours), step=step)


def _without_timing(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "timing"}

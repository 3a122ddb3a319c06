"""What a run is predicted to need, what there is, and what to change where the two do not meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strata_core.errors import MemoryFitError
from strata_core.memory_fit.sizes import format_bytes


@dataclass(frozen=True)
class Remedy:
    """A change of the recipe that strata accepts and that was itself predicted to fit.

    Attributes:
        changes: the settings to write, dotted key to value; derived ones that would follow with their present value.
        predicted_peak_bytes: the peak with them.
        text: what they cost, for a person.
    """

    changes: Mapping[str, Any]
    predicted_peak_bytes: int
    text: str

    def as_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "changes": dict(self.changes),
            "predicted_peak_bytes": self.predicted_peak_bytes,
            "text": self.text,
        }

    def arguments(self) -> str:
        """The changes as arguments of the command: "--set key=value ..."."""
        return " ".join(f"--set {key}={value}" for key, value in self.changes.items())


@dataclass(frozen=True)
class MemoryPlan:
    """The predicted peak of one rank.

    Attributes:
        device: "cpu", "cuda" or "mps".
        budget_bytes: what one rank may use there.
        predicted_peak_bytes: the sum of `parts`.
        parts: what is held at the moment of the peak: "weights", "gradients", "optimizer", "buckets" (gradients laid
            out for the reduction over ranks), "batch", "saved_activations" (kept for backward), "logits_and_loss"
            (what the loss makes of the model's output), "largest_transient" (all else that operations hold just then),
            "workspace" (of matrix-product libraries), "snapshot" (host copy of a checkpoint being written), "overhead"
            (the process).
        allocator_peak_bytes: the share of the peak that the device's tensor allocator will report.
        largest_micro_batch_size: the largest batch.micro_batch_size that fits, divides a rank's share of the batch and
            that neither rules nor corpus refuse, all else as resolved; 0 where there is none.
        remedies: changes that make the run fit: another micro-batch, recomputation, shorter windows, as far as each
            helps and is not refused. Empty where it fits as it is, or nothing of that helps.
        notes: how the prediction was made where that limits it.
        changeable: the settings that remedies may change; None: all.
    """

    device: str
    budget_bytes: int
    parts: Mapping[str, int]
    allocator_peak_bytes: int
    largest_micro_batch_size: int
    remedies: tuple[Remedy, ...] = ()
    notes: tuple[str, ...] = ()
    changeable: frozenset[str] | None = None

    @property
    def predicted_peak_bytes(self) -> int:
        """The peak, every part together."""
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """Whether the peak stays within the budget."""
        return self.predicted_peak_bytes <= self.budget_bytes

    def as_json(self) -> dict[str, Any]:
        """JSON values; "memory" in the answer of a dry run."""
        return {
            "device": self.device,
            "budget_bytes": self.budget_bytes,
            "predicted_peak_bytes": self.predicted_peak_bytes,
            "allocator_peak_bytes": self.allocator_peak_bytes,
            "parts": dict(self.parts),
            "fits": self.fits,
            "largest_micro_batch_size": self.largest_micro_batch_size,
            "remedies": [remedy.as_json() for remedy in self.remedies],
            "notes": list(self.notes),
        }


def require_fit(plan: MemoryPlan) -> None:
    """Refuses a run that cannot fit.

    Raises:
        MemoryFitError: the peak is above the budget; names both, the largest parts, and the remedies.
    """
    if plan.fits:
        return
    largest = sorted(plan.parts.items(), key=lambda part: -part[1])[:3]
    held = ", ".join(f"{name.replace('_', ' ')} {format_bytes(size)}" for name, size in largest)
    advice = "; ".join(_advice(remedy) for remedy in plan.remedies)
    model = "a smaller model, or " if plan.changeable is None else ""
    raise MemoryFitError(
        f"this run needs {format_bytes(plan.predicted_peak_bytes)} on a rank's {plan.device}, where "
        f"{format_bytes(plan.budget_bytes)} is to be had; most of it: {held}",
        hint=advice or f"use {model}a device with more memory",
    )


def _advice(remedy: Remedy) -> str:
    return f"{remedy.arguments()} needs {format_bytes(remedy.predicted_peak_bytes)} ({remedy.text})"

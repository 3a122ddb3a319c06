"""The memory plan of a recipe: its predicted peak, the largest micro-batch that fits, and what else would help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from strata_core.memory_fit.budget import free_device_bytes
from strata_core.memory_fit.plan import MemoryPlan, Remedy
from strata_core.memory_fit.process_memory import process_parts
from strata_core.memory_fit.trace import StepMemory, trace_step
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.precision import choose_precision
from strata_core.training.task import Task

PART_NAMES = (
    "weights",
    "gradients",
    "optimizer",
    "buckets",
    "batch",
    "saved_activations",
    "logits_and_loss",
    "largest_transient",
    "workspace",
    "snapshot",
    "overhead",
)
"""The parts of a plan, in the order in which they are shown."""

_CUDA_GRANULE_BYTES = 512  # torch's caching allocator
_SHORTEST_WINDOW_TOKENS = 32
_STATE_PARTS = ("weights", "optimizer")
"""What is held throughout, whatever the batch."""

Settings = Mapping[str, Any]


def predict_memory(
    make_task: Callable[[TrainingRecipe], Task],
    recipe: TrainingRecipe,
    *,
    device_type: str,
    world_size: int = 1,
    device_memory_bytes: int | None = None,
    ranks_on_host: int | None = None,
) -> MemoryPlan:
    """Predicts the peak of one rank; nothing of the model's size is allocated.

    Args:
        make_task: makes the task of a recipe; called again for every variation that is looked at.
        recipe: the run's recipe.
        device_type: "cpu", "cuda" or "mps"; the machine need not have one where `device_memory_bytes` is given.
        world_size: ranks of the run.
        device_memory_bytes: memory of the device; None: what is free on this machine's.
        ranks_on_host: ranks that share this machine's memory; None: all of them.

    Raises:
        RecipeError: the batch cannot be cut into these micro-batches and ranks.
    """
    if device_memory_bytes is None:
        device_memory_bytes = free_device_bytes(device_type, ranks_on_host=ranks_on_host or world_size)
    predictor = _Predictor(make_task, recipe, device_type, world_size, device_memory_bytes)
    asked = predictor.memory({})
    parts = predictor.parts({})
    largest = predictor.largest_micro_batch({})
    fits = sum(parts.values()) <= device_memory_bytes
    return MemoryPlan(
        device=device_type,
        budget_bytes=device_memory_bytes,
        parts=parts,
        allocator_peak_bytes=sum(asked.parts.values()) + parts["workspace"],
        largest_micro_batch_size=largest,
        remedies=() if fits else predictor.remedies(largest),
        notes=_notes(recipe, device_type, asked),
    )


class _Predictor:
    """Predictions for variations of one recipe, each made once."""

    def __init__(
        self,
        make_task: Callable[[TrainingRecipe], Task],
        recipe: TrainingRecipe,
        device_type: str,
        world_size: int,
        budget_bytes: int,
    ) -> None:
        self._make_task = make_task
        self._recipe = recipe
        self._device_type = device_type
        self._world_size = world_size
        self._budget_bytes = budget_bytes
        self._known: dict[tuple[tuple[str, Any], ...], StepMemory] = {}

    def memory(self, changes: Settings) -> StepMemory:
        """What a step of the changed recipe holds."""
        key = tuple(sorted(changes.items()))
        if key not in self._known:
            recipe = with_settings(self._recipe, changes)
            force = recipe.run.force_precision
            self._known[key] = trace_step(
                self._make_task(recipe),
                recipe,
                device=tracing_device(self._device_type),
                precision=choose_precision(recipe.run.precision, torch.device(self._device_type), force=force),
                world_size=self._world_size,
                granule_bytes=_CUDA_GRANULE_BYTES if self._device_type == "cuda" else 1,
            )
        return self._known[key]

    def parts(self, changes: Settings) -> dict[str, int]:
        """The plan's parts for the changed recipe."""
        step = self.memory(changes)
        found = step.parts | self._process_parts(changes, step.parts, step)
        return {name: found.get(name, 0) for name in PART_NAMES}

    def _process_parts(self, changes: Settings, tensors: Mapping[str, int], step: StepMemory) -> dict[str, int]:
        recompute = changes.get("memory.recompute", self._recipe.memory.recompute)
        return process_parts(
            self._device_type,
            tensors,
            step.checkpoint_bytes,
            recompute=recompute,
            shapes_vary=step.shapes_vary,
        )

    def peak_bytes(self, changes: Settings) -> int:
        """The peak of the changed recipe."""
        return sum(self.parts(changes).values())

    def fits(self, changes: Settings) -> bool:
        """Whether the changed recipe stays within the budget."""
        return self.peak_bytes(changes) <= self._budget_bytes

    def largest_micro_batch(self, changes: Settings) -> int:
        """The largest micro-batch that goes into the batch and fits, 0 where none does.

        Sizes are looked at from above, since a peak need not grow with the size: a smaller one means more
        micro-batches, whose sum has to be held.
        """
        batch = self._recipe.batch
        share = batch.batch_size // self._world_size
        looked_at = [batch.micro_batch_size]
        for size in range(share, 0, -1):
            if share % size or any(self._is_too_large(changes, size, other) for other in looked_at):
                continue
            if self.fits(self._with_micro_batch(changes, size)):
                return size
            looked_at.append(size)
        return 0

    def _is_too_large(self, changes: Settings, size: int, other: int) -> bool:
        """Whether what another size holds at its peak rules this size out: at the same moment of the step there is the
        same state, and saved activations in proportion to the size."""
        step = self.memory(self._with_micro_batch(changes, other))
        held = {name: step.parts.get(name, 0) for name in _STATE_PARTS}
        held["saved_activations"] = step.parts.get("saved_activations", 0) * size // other
        total = held | self._process_parts(changes, held, step)
        return sum(total.values()) > self._budget_bytes

    def remedies(self, largest: int) -> tuple[Remedy, ...]:
        """What would make the recipe fit, the cheapest first.

        Args:
            largest: the largest micro-batch that fits, 0 where none does.
        """
        if self._is_too_large({}, 0, self._recipe.batch.micro_batch_size):
            return ()
        found = []
        if largest > 0:
            changes = self._with_micro_batch({}, largest)
            found.append(self._remedy(changes, "the same gradients from more, smaller passes"))
        if self._recipe.memory.recompute == "none":
            found += self._recomputation()
        found += self._shorter_windows()
        return tuple(found)

    def _recomputation(self) -> list[Remedy]:
        changes: dict[str, Any] = {"memory.recompute": "blocks"}
        cost = "the same gradients; blocks are computed twice, about a third more time"
        if not self.fits(changes):
            size = self.largest_micro_batch(changes)
            if size == 0:
                return []
            changes = self._with_micro_batch(changes, size)
        return [self._remedy(changes, cost)]

    def _shorter_windows(self) -> list[Remedy]:
        length = getattr(self._recipe.batch, "seq_len", 0) // 2
        while length >= _SHORTEST_WINDOW_TOKENS:
            changes = {"batch.seq_len": length}
            if self.fits(changes):
                return [self._remedy(changes, "another run: fewer tokens a step and shorter contexts")]
            length //= 2
        return []

    def _remedy(self, changes: Settings, text: str) -> Remedy:
        return Remedy(changes, self.peak_bytes(changes), text)

    def _with_micro_batch(self, changes: Settings, size: int) -> dict[str, Any]:
        asked = size == self._recipe.batch.micro_batch_size
        return dict(changes) if asked else {**changes, "batch.micro_batch_size": size}


def with_settings(recipe: TrainingRecipe, changes: Settings) -> TrainingRecipe:
    """The recipe with other values at dotted keys of the form table.key."""
    for key, value in changes.items():
        table, name = key.split(".")
        changed = getattr(recipe, table).model_copy(update={name: value})
        recipe = recipe.model_copy(update={table: changed})
    return recipe


def tracing_device(device_type: str) -> torch.device:
    """Where fake tensors live: CUDA's kernels are followed as such where torch was built for it, else as the CPU's."""
    built = device_type == "cuda" and torch.backends.cuda.is_built()
    return torch.device("cuda", 0) if built else torch.device("cpu")


def _notes(recipe: TrainingRecipe, device_type: str, asked: StepMemory) -> tuple[str, ...]:
    notes = []
    if recipe.run.compile:
        notes.append("torch.compile usually needs less than this: the step was followed uncompiled")
    if device_type != tracing_device(device_type).type:
        notes.append(
            f"this build of torch cannot follow {device_type} kernels: the CPU's were followed, which keep more, "
            "so the prediction is on the high side"
        )
    if asked.on_real_tensors:
        notes.append("shapes depend on values in this task: one step was run on real tensors")
    return tuple(notes)

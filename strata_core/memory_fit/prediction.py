"""The memory plan of a recipe: its predicted peak, the largest micro-batch that fits, and what else would help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from strata_core.errors import RecipeError
from strata_core.memory_fit.budget import free_device_bytes
from strata_core.memory_fit.plan import MemoryPlan, Remedy
from strata_core.memory_fit.process_memory import HELD_THROUGHOUT, process_parts
from strata_core.memory_fit.trace import StepMemory, trace_step
from strata_core.recipes.graph import GraphBatchTable
from strata_core.recipes.rules import broken_rules
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.distributed import Ranks
from strata_core.training.precision import choose_precision
from strata_core.training.step import micro_batches_per_rank
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

Settings = Mapping[str, Any]


def predict_memory(
    make_task: Callable[[TrainingRecipe], Task],
    recipe: TrainingRecipe,
    *,
    device_type: str,
    world_size: int = 1,
    device_memory_bytes: int | None = None,
    ranks_on_host: int | None = None,
    changeable: frozenset[str] | None = None,
    resident_bytes: int = 0,
) -> MemoryPlan:
    """Predicts the peak of one rank; nothing of the model's size is allocated.

    Variations of the recipe are looked at as far as strata would train them: its rules hold, the batch can be cut, and
    the task's check passes, or refuses them for just what it refuses the recipe itself for.

    Args:
        make_task: makes the task of a recipe; called again for every variation that is looked at.
        recipe: the run's recipe; predicted even where the task's check refuses it.
        device_type: "cpu", "cuda" or "mps"; the machine need not have one where `device_memory_bytes` is given.
        world_size: ranks of the run.
        device_memory_bytes: memory of the device; None: what is free on this machine's.
        ranks_on_host: ranks that share this machine's memory; None: all of them.
        changeable: the settings that remedies may change; None: all.
        resident_bytes: CPU: what this process has resident now, where it will train itself; 0 where another will.

    Raises:
        RecipeError: the batch cannot be cut into these micro-batches and ranks.
    """
    if device_memory_bytes is None:
        device_memory_bytes = free_device_bytes(device_type, ranks_on_host=ranks_on_host or world_size)
    micro_batches_per_rank(recipe, Ranks(world_size=world_size), has_started=changeable is not None)
    predictor = _Predictor(make_task, recipe, device_type, world_size, device_memory_bytes, resident_bytes)
    parts = predictor.parts(predictor.asked, {})
    largest = predictor.largest_micro_batch({})
    fits = sum(parts.values()) <= device_memory_bytes
    return MemoryPlan(
        device=device_type,
        budget_bytes=device_memory_bytes,
        parts=parts,
        allocator_peak_bytes=sum(predictor.asked.parts.values()) + parts["workspace"],
        largest_micro_batch_size=largest,
        remedies=() if fits else predictor.remedies(largest, changeable),
        notes=_notes(recipe, device_type, predictor.asked),
        changeable=changeable,
    )


class _Predictor:
    """Predictions for variations of one recipe, each made once.

    Attributes:
        asked: what a step of the recipe itself holds.
    """

    def __init__(
        self,
        make_task: Callable[[TrainingRecipe], Task],
        recipe: TrainingRecipe,
        device_type: str,
        world_size: int,
        budget_bytes: int,
        resident_bytes: int,
    ) -> None:
        self._make_task = make_task
        self._recipe = recipe
        self._device_type = device_type
        self._world_size = world_size
        self._budget_bytes = budget_bytes
        self._resident_bytes = resident_bytes
        task = make_task(recipe)
        self._refused_anyway = _refusal(task)
        self.asked = self._trace(recipe, task)
        self._known: dict[tuple[tuple[str, Any], ...], StepMemory | None] = {(): self.asked}

    def memory(self, changes: Settings) -> StepMemory | None:
        """What a step of the changed recipe holds; None where strata would not train it."""
        key = tuple(sorted(changes.items()))
        if key not in self._known:
            self._known[key] = self._look_at(with_settings(self._recipe, changes))
        return self._known[key]

    def _look_at(self, recipe: TrainingRecipe) -> StepMemory | None:
        if broken_rules(recipe):
            return None
        try:
            task = self._make_task(recipe)
            if _refusal(task) not in (None, self._refused_anyway):
                return None
            return self._trace(recipe, task)
        except RecipeError:  # it does not go with the corpus, or its batch cannot be cut
            return None

    def _trace(self, recipe: TrainingRecipe, task: Task) -> StepMemory:
        return trace_step(
            task,
            recipe,
            device=tracing_device(self._device_type),
            precision=choose_precision(
                recipe.run.precision, torch.device(self._device_type), force=recipe.run.force_precision
            ),
            world_size=self._world_size,
            granule_bytes=_CUDA_GRANULE_BYTES if self._device_type == "cuda" else 1,
        )

    def parts(self, step: StepMemory, changes: Settings) -> dict[str, int]:
        """The plan's parts for the changed recipe, of which a step holds `step`."""
        found = step.parts | self._process_parts(changes, step.parts, step)
        return {name: found.get(name, 0) for name in PART_NAMES}

    def _process_parts(self, changes: Settings, tensors: Mapping[str, int], step: StepMemory) -> dict[str, int]:
        batch = self._recipe.batch
        size = changes.get("batch.micro_batch_size", batch.micro_batch_size)
        return process_parts(
            self._device_type,
            tensors,
            step.checkpoint_bytes,
            recompute=changes.get("memory.recompute", self._recipe.memory.recompute),
            accumulates=size * self._world_size < batch.batch_size,
            shapes_vary=step.shapes_vary,
            resident_bytes=self._resident_bytes,
        )

    def fits(self, changes: Settings) -> bool:
        """Whether strata would train the changed recipe, and within the budget."""
        return bool(self._remedy(changes, ""))

    def largest_micro_batch(self, changes: Settings) -> int:
        """The largest micro-batch that goes into the batch, is not refused, and fits; 0 where none does.

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
        same state, and saved activations in proportion to the size. A size that is refused rules out nothing."""
        step = self.memory(self._with_micro_batch(changes, other))
        if step is None:
            return False
        held = {name: step.parts.get(name, 0) for name in HELD_THROUGHOUT}
        held["saved_activations"] = step.parts.get("saved_activations", 0) * size // other
        # What the process takes besides is least where a step is one micro-batch.
        at_once = {**changes, "batch.micro_batch_size": self._recipe.batch.batch_size}
        total = held | self._process_parts(at_once, held, step)
        return sum(total.values()) > self._budget_bytes

    def remedies(self, largest: int, changeable: frozenset[str] | None) -> tuple[Remedy, ...]:
        """What would make the recipe fit: first what leaves the run as it is, then what makes it another.

        Args:
            largest: the largest micro-batch that fits, 0 where none does.
            changeable: the settings that may change; None: all.
        """
        asked = self._recipe.batch.micro_batch_size
        if self._is_too_large({}, 0, asked):
            return ()
        found = []
        if largest > 0:
            passes = "more, smaller passes" if largest < asked else "fewer, larger passes"
            found += self._remedy(self._with_micro_batch({}, largest), f"the same examples a step, in {passes}")
        if self._recipe.memory.recompute == "none":
            found += self._recomputation()
        found += self._shorter_windows()
        return tuple(remedy for remedy in found if changeable is None or remedy.changes.keys() <= changeable)

    def _recomputation(self) -> list[Remedy]:
        changes: dict[str, Any] = {"memory.recompute": "blocks"}
        cost = "the same gradients; blocks are computed twice, about a third more time"
        if not self.fits(changes):
            size = self.largest_micro_batch(changes)
            if size == 0:
                return []
            changes = self._with_micro_batch(changes, size)
            cost = "the same examples a step, in other passes; blocks are computed twice, about a third more time"
        return self._remedy(changes, cost)

    def _shorter_windows(self) -> list[Remedy]:
        length = getattr(self._recipe.batch, "seq_len", 0) // 2
        while length >= _SHORTEST_WINDOW_TOKENS:
            text = "another run: fewer tokens a step and shorter contexts"
            if found := self._remedy({"batch.seq_len": length}, text):
                return found
            length //= 2
        return []

    def _remedy(self, changes: Settings, text: str) -> list[Remedy]:
        """The changes as a remedy; none where strata would not train the changed recipe, or not within the budget."""
        step = self.memory(changes)
        if step is None:
            return []
        peak_bytes = sum(self.parts(step, changes).values())
        return [Remedy(changes, peak_bytes, text)] if peak_bytes <= self._budget_bytes else []

    def _with_micro_batch(self, changes: Settings, size: int) -> dict[str, Any]:
        """The changes with another micro-batch and, beside it, what would follow it and draw other examples."""
        batch = self._recipe.batch
        if size == batch.micro_batch_size:
            return dict(changes)
        kept = {"batch.relation_group_size": batch.relation_group_size} if isinstance(batch, GraphBatchTable) else {}
        return {**changes, "batch.micro_batch_size": size, **kept}


def _refusal(task: Task) -> str | None:
    """What the task says against its data; None where they serve."""
    try:
        task.check()
    except RecipeError as error:
        return error.message
    return None


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

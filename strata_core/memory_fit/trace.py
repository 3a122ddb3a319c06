"""One training step run for its memory alone, on fake tensors: shapes and lifetimes, no numbers and no storage."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from strata_core.memory_fit.gradient_memory import GradientMemory
from strata_core.memory_fit.timeline import Timeline
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.checkpoint.state import expected_checkpoint_bytes, model_tensors
from strata_core.training.distributed import ALONE, Ranks
from strata_core.training.optimizer import optimizer_state
from strata_core.training.precision import Precision
from strata_core.training.step import TrainingStep, micro_batches_per_rank
from strata_core.training.task import Batch, EvaluationContext, EvaluationStopped, StepPlan, Task

_VALUES_NEEDED = (DataDependentOutputException, DynamicOutputShapeException)
"""What fake tensors raise where a shape or a branch depends on values they do not have."""


@dataclass(frozen=True)
class StepMemory:
    """What a step holds at its peak.

    Attributes:
        parts: bytes by name, see `MemoryPlan`; tensors only.
        checkpoint_bytes: the tensors of a checkpoint.
        on_real_tensors: whether the task could not be followed on fake tensors and a real step was run instead.
        shapes_vary: whether other steps have batches of other sizes.
    """

    parts: dict[str, int]
    checkpoint_bytes: int
    on_real_tensors: bool
    shapes_vary: bool


def trace_step(
    task: Task,
    recipe: TrainingRecipe,
    *,
    device: torch.device,
    precision: Precision,
    world_size: int,
    granule_bytes: int,
) -> StepMemory:
    """The peak of a step after the first, of its costliest micro-batches, or of an evaluation where that takes more.

    Micro-batches may be of several kinds (other tensors, other types); the largest of each kind is traced. A step is
    traced without torch.compile and in this process alone; `GradientMemory` adds what other micro-batches and ranks
    cost.

    Args:
        task: the kind of model.
        recipe: the run's recipe.
        device: the device of the (fake) tensors.
        precision: decides the autocast dtype.
        world_size: ranks of the run.
        granule_bytes: what the real device's allocator rounds sizes up to.

    Raises:
        RecipeError: the global batch cannot be cut into these micro-batches and ranks.
    """
    leaves = micro_batches_per_rank(recipe, Ranks(world_size=world_size))
    plan = task.worst_step()
    batches = _largest_of_each_kind([task.fetch(micro_batch) for micro_batch in plan.micro_batches[:leaves]])
    fake = FakeTensorMode(allow_non_fake_inputs=True)

    def follow(mode: AbstractContextManager[Any], place: Callable[[Tensor], Tensor]) -> StepMemory:
        timeline = Timeline(device.type, granule_bytes)
        run = _TracedRun(task, recipe, timeline, device, precision, leaves=leaves, world_size=world_size)
        with torch.random.fork_rng(devices=[]), mode, timeline, _default_device(device):
            checkpoint_bytes = run.build()
            for batch in batches:
                run.train(plan, {name: place(tensor) for name, tensor in batch.items()})
            if recipe.evaluation.every:
                run.evaluate()
        return StepMemory(
            timeline.parts_at_peak(),
            checkpoint_bytes,
            on_real_tensors=mode is not fake,
            shapes_vary=task.shapes_vary,
        )

    try:
        return follow(fake, lambda tensor: fake.from_tensor(tensor).to(device))
    except _VALUES_NEEDED:
        return follow(nullcontext(), lambda tensor: tensor.to(device, copy=True))


class _TracedRun:
    """A training run reduced to the moments that can be its peak."""

    def __init__(
        self,
        task: Task,
        recipe: TrainingRecipe,
        timeline: Timeline,
        device: torch.device,
        precision: Precision,
        *,
        leaves: int,
        world_size: int,
    ) -> None:
        self._task = task
        self._recipe = recipe
        self._timeline = timeline
        self._device = device
        self._precision = precision
        self._leaves = leaves
        self._world_size = world_size

    def build(self) -> int:
        """Makes model, optimizer and optimizer state; returns the bytes of a checkpoint's tensors."""
        model = self._task.build_model().train()
        self._timeline.label([*model.parameters(), *model.buffers()], "weights")
        self._timeline.watch_model(model)
        self._model: nn.Module = model
        recipe = _one_micro_batch(self._recipe)
        self._step = TrainingStep(self._task, model, recipe, self._device, ALONE, self._precision)
        for parameter in self._step.parameters.values():
            parameter.grad = torch.zeros_like(parameter)
        self._step.update(torch.zeros(len(self._task.loss_weights), device=self._device), rate=0.0, step=0)
        state = optimizer_state(self._step.optimizer, self._step.parameters) | self._step.average.averages()
        self._timeline.label(state.values(), "optimizer")
        self._gradients = GradientMemory(
            self._step.parameters,
            self._timeline,
            leaves=self._leaves,
            world_size=self._world_size,
            exact=self._recipe.distributed.exact_reduction,
        )
        decay = self._recipe.optimizer.average_decay
        return expected_checkpoint_bytes(model_tensors(model), self._step.parameters, average_decay=decay)

    def train(self, plan: StepPlan, batch: Batch) -> None:
        """The last micro-batch of a step, and the update."""
        self._timeline.label(batch.values(), "batch")
        self._gradients.before_last_micro_batch()
        only = dataclasses.replace(plan, micro_batches=[None])
        sums = self._step.accumulate(only, [batch], step=0)
        self._gradients.after_last_micro_batch()
        self._step.update(sums.sum(dim=0), rate=0.0, step=0)

    def evaluate(self) -> None:
        """An evaluation's first batch, as far as it goes without values."""
        answers = iter([False])
        context = EvaluationContext(
            device=self._device,
            ranks=ALONE,
            autocast=self._step.autocast,
            stop_requested=lambda: next(answers, True),
            progress=lambda done, total: None,
        )
        self._model.eval()
        try:
            with torch.no_grad(), self._step.average.in_place():
                self._task.evaluate(self._model, context)
        except (EvaluationStopped, *_VALUES_NEEDED):
            return
        except RuntimeError as error:
            # What .numpy() and .tolist() say of fake tensors; what comes after them is not on the device.
            if "not supported for tensor subclasses" not in str(error):
                raise


def _one_micro_batch(recipe: TrainingRecipe) -> TrainingRecipe:
    batch = recipe.batch.model_copy(update={"batch_size": recipe.batch.micro_batch_size})
    run = recipe.run.model_copy(update={"compile": False})
    distributed = recipe.distributed.model_copy(update={"exact_reduction": False})
    return recipe.model_copy(update={"batch": batch, "run": run, "distributed": distributed})


def _largest_of_each_kind(batches: list[Batch]) -> list[Batch]:
    largest: dict[Any, tuple[int, Batch]] = {}
    for batch in batches:
        kind = frozenset((name, tensor.dtype) for name, tensor in batch.items())
        size_bytes = sum(tensor.nbytes for tensor in batch.values())
        if kind not in largest or size_bytes > largest[kind][0]:
            largest[kind] = size_bytes, batch
    return [batch for _, batch in largest.values()]


def _default_device(device: torch.device) -> AbstractContextManager[Any]:
    return nullcontext() if device.type == "cpu" else device

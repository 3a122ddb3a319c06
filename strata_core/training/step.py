"""One optimizer step: forward and backward of this rank's micro-batches, reduction, guards, update.

Nothing here touches the disk or waits for the device; the engine's loop and the memory prediction run the same code.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from strata_core.errors import RecipeError
from strata_core.randomness import derive_seed
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.averaging import WeightAverage
from strata_core.training.distributed import Ranks
from strata_core.training.guard import UpdateGuard
from strata_core.training.optimizer import build_optimizer, set_rate, trainable_parameters
from strata_core.training.precision import LossScale, Precision
from strata_core.training.reduction import GradientTree, exact_hook, summing_hook
from strata_core.training.task import Batch, StepPlan, Task

_LARGEST_LISTED_RANKS = 64


class _LossModule(nn.Module):
    """A model together with its losses, so that DDP and torch.compile see one forward from batch to loss sums."""

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._loss_sums = task.loss_sums

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self._loss_sums(self.model, batch)


class TrainingStep:
    """What one step needs, built once: model, optimizer, average, guard, loss scale, and the reduction over ranks.

    Args:
        task: the kind of model.
        model: its model, on `device`.
        recipe: the run's recipe.
        device: where to compute.
        ranks: this process's place in the run.
        precision: the precision obtained.
    """

    def __init__(
        self,
        task: Task,
        model: nn.Module,
        recipe: TrainingRecipe,
        device: torch.device,
        ranks: Ranks,
        precision: Precision,
    ) -> None:
        self.model = model
        self.device = device
        self.ranks = ranks
        self.parameters = trainable_parameters(model)
        self.optimizer = build_optimizer(self.parameters, recipe.optimizer, task.rate_factors)
        self.average = WeightAverage(self.parameters, recipe.optimizer.average_decay)
        self.scale = LossScale(device, initial=recipe.run.initial_loss_scale, enabled=precision.effective == "fp16")
        self.guard = UpdateGuard(
            device,
            spike_factor=recipe.optimizer.skip_grad_norm,
            nonfinite_limit=recipe.optimizer.nonfinite_limit,
        )
        self.autocast = precision.autocast(device)
        self._recipe = recipe
        self._weights = dict(task.loss_weights)
        self.report_dtype = torch.float32 if device.type == "mps" else torch.float64
        self._leaves = micro_batches_per_rank(recipe, ranks)
        self._tree = GradientTree(self.parameters, self._leaves) if recipe.distributed.exact_reduction else None
        self._module = self._wrap(_LossModule(task, model))

    def _wrap(self, module: nn.Module) -> nn.Module:
        if self._recipe.run.compile:
            module.compile()
        if self.ranks.world_size == 1:
            return module
        options = self._recipe.distributed
        wrapped = DistributedDataParallel(
            module,
            device_ids=[self.device.index] if self.device.type == "cuda" else None,
            static_graph=options.static_graph,
            find_unused_parameters=options.find_unused_parameters,
            gradient_as_bucket_view=True,
        )
        if self._tree is not None:
            wrapped.register_comm_hook(self._tree, exact_hook)
        else:
            wrapped.register_comm_hook(None, summing_hook)
        return wrapped

    def accumulate(self, plan: StepPlan, batches: Iterable[Batch], step: int) -> Tensor:
        """Gradients of the global batch, left in the parameters; each loss divided once by its count over the batch.

        Args:
            plan: the step's plan.
            batches: this rank's micro-batches, in order, on the device.
            step: the step's number, counted from 0; keys the randomness of each micro-batch.

        Returns:
            The losses' sums, float64 (float32 on MPS) [micro-batches of the global batch, losses]; rows of other
            ranks are 0.
        """
        sums = torch.zeros(len(plan.micro_batches), len(self._weights), dtype=self.report_dtype, device=self.device)
        counts = plan.counts
        factors = {name: weight / counts[name] if counts[name] else 0.0 for name, weight in self._weights.items()}
        mine = self.ranks.slice(len(plan.micro_batches))
        for index, batch in zip(mine, batches, strict=True):
            torch.manual_seed(derive_seed(self._recipe.run.seed, "dropout", step, index))
            last = index == mine[-1]
            if last:
                self.ranks.arrive()
            with self._without_reduction(last):
                with self.autocast():
                    losses = self._module(batch)
                total = torch.stack([losses[name] * factor for name, factor in factors.items()]).sum()
                (total * self.scale.scale if self.scale.enabled else total).backward()
            sums[index] = torch.stack([losses[name].detach() for name in factors])
            if self._tree is not None and not last:
                self._tree.take(index - mine[0])
        if self._tree is not None:
            if self.ranks.world_size == 1:
                self._tree.finish_all()
            self._tree.reset()
        return sums

    def _without_reduction(self, last: bool) -> Any:
        if isinstance(self._module, DistributedDataParallel) and not last:
            return self._module.no_sync()
        return nullcontext()

    def update(self, losses: Tensor, rate: float, step: int) -> dict[str, Tensor]:
        """Clips, asks the guard, applies (or skips) the update, and takes the weights into their average.

        Args:
            losses: each loss of the global batch, divided by its count, [losses].
            rate: the learning rate.
            step: the step's number, counted from 0.

        Returns:
            Scalars on the device: "grad_norm" (unclipped), "skipped" (0 or 1), "halted" (0 or 1).
        """
        gradients = [parameter.grad for parameter in self.parameters.values() if parameter.grad is not None]
        self.scale.unscale(gradients)
        norm = torch.nn.utils.get_total_norm(gradients)
        finite_gradient = torch.isfinite(norm)
        finite = finite_gradient & torch.isfinite(losses).all()
        excused = self.scale.may_explain() & torch.isfinite(losses).all()
        skipped = self.guard.skip(norm, finite, excused)
        self.scale.update(finite_gradient)
        if self._recipe.optimizer.grad_clip > 0:
            coefficient = torch.clamp(self._recipe.optimizer.grad_clip / (norm + 1e-6), max=1.0)
            torch._foreach_mul_(gradients, coefficient)
        set_rate(self.optimizer, rate)
        self.optimizer.found_inf = skipped  # type: ignore[attr-defined]
        self.optimizer.grad_scale = None  # type: ignore[attr-defined]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.update(step)
        return {"grad_norm": norm, "skipped": skipped, "halted": self.guard.halted}


def micro_batches_per_rank(recipe: TrainingRecipe, ranks: Ranks, *, has_started: bool = False) -> int:
    """How many micro-batches a rank computes in one step.

    Args:
        recipe: the run's recipe.
        ranks: of the run.
        has_started: whether the recipe can change no more, so that only another number of ranks helps.

    Raises:
        RecipeError: the global batch cannot be cut that way; the numbers are in the message.
    """
    batch = recipe.batch
    micro_batches = batch.batch_size // batch.micro_batch_size
    share, rest = divmod(micro_batches, ranks.world_size)
    if rest or share == 0:
        raise RecipeError(
            f"batch.batch_size {batch.batch_size} makes {micro_batches} micro-batches of {batch.micro_batch_size}, "
            f"which {ranks.world_size} ranks cannot share equally",
            hint=_remedy(
                f"launch as many ranks as divide {micro_batches}: {_divisors_text(micro_batches)}",
                f"make batch.batch_size a multiple of batch.micro_batch_size x {ranks.world_size}",
                has_started=has_started,
            ),
        )
    options = recipe.distributed
    if options.exact_reduction and ranks.world_size & (ranks.world_size - 1):
        raise RecipeError(
            f"distributed.exact_reduction needs a power of two of ranks, got {ranks.world_size}",
            hint=_remedy(
                "launch 1, 2, 4, 8, ... ranks", "set distributed.exact_reduction = false", has_started=has_started
            ),
        )
    if options.static_graph and ranks.world_size > 1 and share > 1:
        raise RecipeError(
            f"distributed.static_graph cannot be combined with accumulation ({share} micro-batches a rank): "
            "torch stops reducing under no_sync",
            hint=_remedy(
                f"launch one rank, or {micro_batches}",
                "set distributed.static_graph = false, which is not needed",
                has_started=has_started,
            ),
        )
    return share


def _remedy(ranks: str, recipe: str, *, has_started: bool) -> str:
    return ranks if has_started else f"{ranks}; or {recipe}"


def _divisors_text(number: int) -> str:
    """The divisors of a number, of many the smallest and the number itself: "1, 2, 4, 8"."""
    shown = [divisor for divisor in range(1, min(number, _LARGEST_LISTED_RANKS) + 1) if number % divisor == 0]
    return ", ".join(map(str, shown)) + (", ..." if number > _LARGEST_LISTED_RANKS else "")

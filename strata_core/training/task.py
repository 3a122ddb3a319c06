"""What a kind of model supplies to the engine: its model, its batches, its losses and its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from strata_core.training.distributed import Ranks

Batch = dict[str, Tensor]
"""The tensors of one micro-batch, on the CPU when fetched, on the device when used."""


@dataclass(frozen=True)
class StepPlan:
    """One optimizer step, known before anything is read.

    Attributes:
        micro_batches: what to fetch for each micro-batch, in the order of the global batch; opaque to the engine.
            Rank r of R takes the r-th of R equal consecutive parts.
        counts: for each loss, the number of things it is a sum over (tokens, arcs, roles, ...) in the whole global
            batch; a sum of their weights where they have any.
        samples: examples in the global batch.
        tokens: tokens in the global batch.
    """

    micro_batches: Sequence[Any]
    counts: Mapping[str, float]
    samples: int
    tokens: int


@dataclass(frozen=True)
class EvaluationContext:
    """What an evaluation may use: where to compute, with whom, and whether to give up early.

    `stop_requested` is agreed over ranks, so every rank calls it the same number of times.
    """

    device: torch.device
    ranks: Ranks
    autocast: Callable[[], AbstractContextManager[Any]]
    stop_requested: Callable[[], bool]
    progress: Callable[[int, int], None]

    def my_share(self, n_batches: int) -> Iterator[int]:
        """Which of an evaluation's batches this rank computes, while the progress over all of them is shown.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        for index in range(n_batches):
            if self.stop_requested():
                raise EvaluationStopped
            if index % self.ranks.world_size == self.ranks.rank:
                yield index
            self.progress(index + 1, n_batches)

    def zeros(self, *shape: int) -> Tensor:
        """Where ranks put what they find, each its own part, to be summed: float64, on MPS float32."""
        dtype = torch.float32 if self.device.type == "mps" else torch.float64
        return torch.zeros(shape, dtype=dtype, device=self.device)


class EvaluationStopped(Exception):
    """Raised by a task's evaluation when `stop_requested` answered yes."""


class Task(Protocol):
    """A kind of model in training. One instance serves one run; all methods are pure functions of their arguments."""

    kind: str
    loss_weights: Mapping[str, float]
    """Weight of each loss; fixes the losses' names and order."""
    rate_factors: Mapping[str, float]
    """What the learning rate is multiplied by for parameters whose names begin so; 1 for all others."""
    shapes_vary: bool
    """Whether batches differ in size from step to step, so that a CPU's heap has more holes."""
    metric_directions: Mapping[str, str]
    """"min" or "max" for each metric of `evaluate` that can select the best checkpoint."""

    def check(self) -> None:
        """Raises RecipeError where the data cannot serve the recipe: too little of it, or a split that is not there."""

    def build_model(self) -> nn.Module:
        """A new model with its initial weights, on the default device; parameters that no loss reaches are frozen."""

    def plan(self, step: int) -> StepPlan:
        """The global batch of step number `step`, counted from 0."""

    def worst_step(self) -> StepPlan:
        """A step whose micro-batches are the costliest that the data holds; for memory prediction."""

    def fetch(self, micro_batch: Any) -> Batch:
        """Reads one micro-batch; called from loading threads."""

    def loss_sums(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Each loss summed over the micro-batch, float32 scalars, in the order of `loss_weights`."""

    def evaluate(self, model: nn.Module, context: EvaluationContext) -> dict[str, float]:
        """Metrics on the validation split, the same on every rank and for any number of ranks."""

    def report(self, model: nn.Module, split: str, context: EvaluationContext) -> dict[str, Any]:
        """All there is to say of the model on the whole of a split: numbers, texts, dictionaries and lists of these.

        A list of dictionaries is a table, one row each. A "confusion" among the outermost keys has such a table for
        each kind of label; `strata evaluate` shows it on request.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """

    def config(self) -> dict[str, Any]:
        """What config.json of a checkpoint holds: enough to build the model anew."""

    def facts(self) -> dict[str, Any]:
        """What a person wants to know about the data before training starts."""

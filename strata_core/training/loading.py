"""Reads micro-batches ahead of the loop. What is read is fixed by the plans, so reading ahead changes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from strata_core.training.distributed import Ranks
from strata_core.training.task import Batch, StepPlan, Task


class BatchLoader:
    """Yields each step's plan with this rank's micro-batches on the device.

    Args:
        task: what plans and reads.
        ranks: whose share of each step is read.
        device: where the batches go.
        workers: threads that read ahead; 0 reads in the loop.
        first_step, end_step: the steps to come, the end not included.
    """

    def __init__(
        self, task: Task, ranks: Ranks, device: torch.device, *, workers: int, first_step: int, end_step: int
    ) -> None:
        self._task = task
        self._ranks = ranks
        self._device = device
        self._steps = range(first_step, end_step)
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="loader") if workers else None
        self._ahead = 2 * workers
        self._upcoming = self._to_read()
        self._reading: deque[Future[Batch]] = deque()

    def __iter__(self) -> Iterator[tuple[StepPlan, Iterator[Batch]]]:
        for step in self._steps:
            plan = self._task.plan(step)
            yield plan, self._batches(len(self._ranks.slice(len(plan.micro_batches))))

    def close(self) -> None:
        """Stops reading ahead."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def _to_read(self) -> Iterator[Any]:
        for step in self._steps:
            micro_batches = self._task.plan(step).micro_batches
            for index in self._ranks.slice(len(micro_batches)):
                yield micro_batches[index]

    def _batches(self, count: int) -> Iterator[Batch]:
        for _ in range(count):
            yield self._to_device(self._next())

    def _next(self) -> Batch:
        if self._executor is None:
            return self._task.fetch(next(self._upcoming))
        while len(self._reading) <= self._ahead:
            micro_batch = next(self._upcoming, None)
            if micro_batch is None:
                break
            self._reading.append(self._executor.submit(self._task.fetch, micro_batch))
        return self._reading.popleft().result()

    def _to_device(self, batch: Batch) -> Batch:
        if self._device.type == "cuda":
            return {name: tensor.pin_memory().to(self._device, non_blocking=True) for name, tensor in batch.items()}
        return {name: tensor.to(self._device) for name, tensor in batch.items()}

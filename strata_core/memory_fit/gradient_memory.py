"""What accumulation and the reduction over ranks hold besides the gradients of one micro-batch.

One traced micro-batch stands for a whole step of any number of micro-batches and ranks: this module puts in place what
would be held when the last and costliest of them starts, and takes what DistributedDataParallel takes while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from strata_core.memory_fit.timeline import Timeline
from strata_core.training.reduction import merges_after_leaf, tree_sum

_FIRST_BUCKET_BYTES, _BUCKET_BYTES = 2**20, 25 * 2**20
"""DistributedDataParallel's defaults: a bucket is full when it reaches this size."""


def partial_sums_held(leaves: int) -> int:
    """How many copies of the gradients an exact sum of `leaves` micro-batches holds at most while one is computed."""
    held = most = 0
    for merges in merges_after_leaf(leaves)[:-1]:
        held += 1 - merges
        most = max(most, held)
    return most


class GradientMemory:
    """Gradients, partial sums and buckets of one rank.

    Args:
        parameters: the trained parameters.
        timeline: told what is what.
        leaves: micro-batches of one rank in a step.
        world_size: ranks.
        exact: whether gradients are summed in one fixed tree (distributed.exact_reduction).
    """

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], timeline: Timeline, *, leaves: int, world_size: int, exact: bool
    ) -> None:
        self._parameters = list(parameters.values())
        self._timeline = timeline
        self._accumulates = leaves > 1 and not exact
        self._copies = partial_sums_held(leaves) if exact else 0
        self._world_size = world_size
        self._gathers = exact and world_size > 1
        self._partial_sums: list[list[Tensor]] = []
        self._views: dict[Tensor, Tensor] = {}
        self._reduced: list[Tensor] = []
        self._bucket: list[Tensor] = []
        self._arrived = 0
        self._full_bytes = _FIRST_BUCKET_BYTES
        if world_size > 1:
            self._views = self._like_the_parameters()
            timeline.label(self._views.values(), "buckets")
        for parameter in self._parameters:
            parameter.register_post_accumulate_grad_hook(self._take)

    def before_last_micro_batch(self) -> None:
        """Puts in place what the micro-batches before it, and the step before, have left."""
        for parameter in self._parameters:
            parameter.grad = torch.zeros_like(parameter) if self._accumulates else None
        self._partial_sums = [list(self._like_the_parameters().values()) for _ in range(self._copies)]
        for copies in self._partial_sums:
            self._timeline.label(copies, "gradients")
        self._arrived, self._full_bytes = 0, _FIRST_BUCKET_BYTES
        if self._gathers:
            # DistributedDataParallel keeps what its hook returned until it has all of the next step's answers.
            self._reduced = list(self._like_the_parameters().values())
            self._timeline.label(self._reduced, "buckets")

    def after_last_micro_batch(self) -> None:
        """Lets go of what only the sums needed."""
        self._partial_sums.clear()
        self._reduced.clear()

    def _like_the_parameters(self) -> dict[Tensor, Tensor]:
        return {parameter: torch.zeros_like(parameter) for parameter in self._parameters}

    def _take(self, parameter: Tensor) -> None:
        gradient = parameter.grad
        assert gradient is not None
        self._timeline.label([gradient], "gradients")
        if not self._views:
            return
        parameter.grad = self._views[parameter].copy_(gradient)
        if self._gathers:
            self._bucket.append(parameter)
            self._arrived += 1
            is_full = sum(each.nbytes for each in self._bucket) >= self._full_bytes
            if is_full or self._arrived == len(self._parameters):
                self._gather()

    def _gather(self) -> None:
        """Takes what an all-gather of one bucket takes: the ranks' buckets, once flat and once apart, and their sum."""
        size = sum(each.numel() for each in self._bucket)
        like = self._bucket[0]
        apart = [like.new_empty(size) for _ in range(self._world_size)]
        flat = like.new_empty(self._world_size * size)
        self._timeline.label([flat, *apart], "buckets")
        del flat
        self._reduced.append(tree_sum(apart))
        self._timeline.label(self._reduced[-1:], "buckets")
        self._bucket, self._full_bytes = [], _BUCKET_BYTES

"""How the gradients of a global batch are added up, over micro-batches and over ranks.

The plain way lets autograd accumulate and DistributedDataParallel all-reduce. The exact way adds the micro-batches'
gradients in one fixed pairwise tree whose leaves are the micro-batches of the global batch. A rank owns a subtree,
so the result is the same, to the last bit, on any power-of-two number of ranks.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn


def merges_after_leaf(leaves: int) -> list[int]:
    """How many pairs are added after each leaf of the tree that halves `leaves` again and again, larger half first."""
    if leaves == 1:
        return [0]
    left = (leaves + 1) // 2
    merges = merges_after_leaf(left) + merges_after_leaf(leaves - left)
    merges[-1] += 1
    return merges


def tree_sum(items: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape in the order of that tree."""
    pending: list[Tensor] = []
    for item, merges in zip(items, merges_after_leaf(len(items)), strict=True):
        pending.append(item)
        for _ in range(merges):
            right = pending.pop()
            pending[-1] = pending[-1] + right
    return pending[0]


class GradientTree:
    """Adds up one rank's subtree while its micro-batches are computed.

    Holds about log2(leaves) copies of the gradients.

    Args:
        parameters: the trained parameters.
        leaves: micro-batches of this rank.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], leaves: int) -> None:
        self._parameters = list(parameters.values())
        self._index = {id(parameter): index for index, parameter in enumerate(self._parameters)}
        self._merges = merges_after_leaf(leaves)
        self._pending: list[list[Tensor]] = []

    def take(self, leaf: int) -> None:
        """Moves the gradients of micro-batch `leaf` (not the last) out of the parameters and into the tree."""
        gradients = []
        for parameter in self._parameters:
            assert parameter.grad is not None
            gradients.append(parameter.grad)
            parameter.grad = None
        self._pending.append(gradients)
        for _ in range(self._merges[leaf]):
            right = self._pending.pop()
            torch._foreach_add_(self._pending[-1], right)

    def finish(self, parameter: Tensor, gradient: Tensor) -> None:
        """Adds what the tree holds for one parameter to its gradient from the last micro-batch, in place."""
        index = self._index[id(parameter)]
        for gradients in reversed(self._pending):
            gradient.add_(gradients[index])

    def finish_all(self) -> None:
        """`finish` for every parameter: the case of one rank."""
        for parameter in self._parameters:
            assert parameter.grad is not None
            self.finish(parameter, parameter.grad)

    def reset(self) -> None:
        """Forgets the step's partial sums."""
        self._pending.clear()


# DDP compares the annotations of its hooks with its own classes, so this module must not postpone them.
def summing_hook(_state: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """A DDP communication hook that adds gradients over ranks (DDP's own would average them)."""
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def exact_hook(tree: GradientTree, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """A DDP communication hook that finishes the tree: this rank's subtree, then the ranks' in the same order."""
    for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
        tree.finish(parameter, gradient)
    buffer = bucket.buffer()
    gathered = [torch.empty_like(buffer) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, buffer)
    future: torch.futures.Future[Tensor] = torch.futures.Future()
    future.set_result(tree_sum(gathered))
    return future

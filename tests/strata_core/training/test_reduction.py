"""The fixed tree of sums: the same additions however the leaves are dealt out to ranks."""

import pytest
import torch

from strata_core.training.reduction import GradientTree, merges_after_leaf, tree_sum


def recursive_sum(items):
    """The tree as its definition says it."""
    if len(items) == 1:
        return items[0]
    half = (len(items) + 1) // 2
    return recursive_sum(items[:half]) + recursive_sum(items[half:])


def spread(count):
    generator = torch.Generator().manual_seed(count)
    return list(
        torch.randn(count, 64, generator=generator) * 10.0 ** torch.randint(-4, 5, (count, 64), generator=generator)
    )


@pytest.mark.parametrize("leaves", range(1, 20))
def test_streaming_gives_the_sum_of_the_recursive_tree_to_the_last_bit(leaves):
    items = spread(leaves)
    assert torch.equal(tree_sum(items), recursive_sum(items))
    assert sum(merges_after_leaf(leaves)) == leaves - 1


@pytest.mark.parametrize(("leaves", "ranks"), [(8, 2), (8, 4), (8, 8), (12, 4), (24, 8), (6, 2), (20, 4)])
def test_ranks_that_own_subtrees_give_the_same_bits(leaves, ranks):
    items = spread(leaves)
    share = leaves // ranks
    parts = [tree_sum(items[rank * share : (rank + 1) * share]) for rank in range(ranks)]
    assert torch.equal(tree_sum(parts), tree_sum(items))


def test_plain_accumulation_would_not_give_the_same_bits():
    items = spread(8)
    assert not torch.equal(sum(items[1:], items[0]), tree_sum(items))


@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 7, 8])
def test_a_gradient_tree_leaves_the_sum_in_the_parameters_and_few_copies_on_the_way(leaves):
    parameter = torch.nn.Parameter(torch.zeros(64))
    tree = GradientTree({"p": parameter}, leaves)
    items = spread(leaves)
    most = 0
    for leaf, item in enumerate(items):
        parameter.grad = item.clone()
        if leaf < leaves - 1:
            tree.take(leaf)
            most = max(most, len(tree._pending))
    tree.finish_all()
    assert torch.equal(parameter.grad, recursive_sum(items))
    assert most <= max(1, leaves.bit_length())

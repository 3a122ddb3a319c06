import pytest
import torch
from torch import nn

from strata_core.memory_fit.gradient_memory import GradientMemory, partial_sums_held
from strata_core.memory_fit.timeline import Timeline

PARAMETER_BYTES = 3 * 2**20


@pytest.mark.parametrize(("leaves", "copies"), [(1, 0), (2, 1), (3, 1), (4, 2), (8, 3), (64, 6)])
def test_an_exact_sum_holds_a_copy_for_each_level_of_its_tree(leaves: int, copies: int) -> None:
    assert partial_sums_held(leaves) == copies


def parts(*, leaves: int, world_size: int, exact: bool) -> dict[str, int]:
    with Timeline("cpu") as timeline:
        parameters = {name: nn.Parameter(torch.zeros(PARAMETER_BYTES // 4)) for name in ("first", "second")}
        timeline.label(parameters.values(), "weights")
        memory = GradientMemory(parameters, timeline, leaves=leaves, world_size=world_size, exact=exact)
        memory.before_last_micro_batch()
        sum(parameter.sum() for parameter in parameters.values()).backward()  # type: ignore[union-attr]
        memory.after_last_micro_batch()
    return timeline.parts_at_peak()


def test_one_micro_batch_alone_holds_one_gradient_a_parameter() -> None:
    assert parts(leaves=1, world_size=1, exact=False)["gradients"] == 2 * PARAMETER_BYTES


def test_several_ranks_hold_buckets_of_the_size_of_the_parameters() -> None:
    assert parts(leaves=1, world_size=2, exact=False)["buckets"] == 2 * PARAMETER_BYTES


def test_accumulation_before_a_reduction_holds_gradients_beside_the_buckets() -> None:
    found = parts(leaves=2, world_size=2, exact=False)
    assert found["gradients"] == found["buckets"] == 2 * PARAMETER_BYTES


def test_exact_sums_hold_partial_sums_beside_the_gradients() -> None:
    assert parts(leaves=8, world_size=1, exact=True)["gradients"] == (3 + 1) * 2 * PARAMETER_BYTES


def test_exact_sums_over_ranks_gather_a_bucket_of_every_rank() -> None:
    # The first parameter to arrive fills DDP's first bucket, the other is left for the last. While that is gathered:
    # the buckets, the last step's answers, the first bucket's new one, and four ranks' second bucket, flat and apart.
    assert parts(leaves=1, world_size=4, exact=True)["buckets"] == (2 + 2 + 1 + 4 + 4) * PARAMETER_BYTES

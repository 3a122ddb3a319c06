import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from strata_core.errors import DataError
from strata_core.training.checkpoint import copy_tensors, expected_checkpoint_bytes, model_tensors


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(6, 4)
        self.output = nn.Linear(4, 6, bias=False)
        self.output.weight = self.embedding.weight
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("scratch", torch.zeros(3), persistent=False)


PLAIN_NAMES = {
    "embedding.weight", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked",
}  # fmt: skip


def test_tied_weights_are_listed_once_and_scratch_buffers_never():
    assert model_tensors(Tied()).keys() == PLAIN_NAMES


@pytest.fixture
def process_group():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_wrappers_leave_no_prefix(process_group):
    assert model_tensors(torch.compile(Tied())).keys() == PLAIN_NAMES
    assert model_tensors(DistributedDataParallel(Tied())).keys() == PLAIN_NAMES
    assert model_tensors(torch.compile(DistributedDataParallel(Tied()))).keys() == PLAIN_NAMES


def test_a_submodule_that_is_called_like_a_wrapper_keeps_its_name():
    model = nn.Module()
    model.module = nn.Linear(2, 2)
    assert model_tensors(model).keys() == {"module.weight", "module.bias"}


def test_copied_tensors_stay_tied():
    source, target = Tied(), Tied()
    copy_tensors(model_tensors(source), model_tensors(target), source="x")
    assert torch.equal(target.output.weight, source.embedding.weight)
    assert target.output.weight is target.embedding.weight


def test_alien_names_are_refused_with_both_lists_and_nothing_is_copied():
    into = {"a": torch.zeros(2), "b": torch.zeros(2)}
    with pytest.raises(DataError, match=r"step 5 .*lacks 1 tensors \(b\).*unknown 1 tensors \(c\)"):
        copy_tensors({"a": torch.ones(2), "c": torch.ones(2)}, into, source="step 5")
    assert into["a"].tolist() == [0, 0]


@pytest.mark.parametrize("found", [torch.ones(3), torch.ones(2, dtype=torch.float64), torch.ones(1, 2)])
def test_another_shape_or_dtype_is_refused(found):
    into = {"a": torch.zeros(2)}
    with pytest.raises(DataError, match=r"a is torch\.float.* there and torch\.float32 \(2,\) here"):
        copy_tensors({"a": found}, into, source="x")
    assert into["a"].tolist() == [0, 0]


def test_expected_bytes_are_the_weights_and_two_moments_with_a_step_each():
    model = {"w": torch.zeros(10, 3), "frozen": torch.zeros(7, dtype=torch.bfloat16)}
    assert expected_checkpoint_bytes(model, ["w"]) == 120 + 14 + 2 * 120 + 4
    assert expected_checkpoint_bytes(model, ["w"], average_decay=0.9) == 120 + 14 + 3 * 120 + 4

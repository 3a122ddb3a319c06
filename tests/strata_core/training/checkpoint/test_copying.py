import pytest
import torch

from strata_core.training.checkpoint.copying import copy_all


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 1000, 1001)])
def test_every_element_is_copied(shape, dtype):
    source = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    destinations = [torch.zeros(shape, dtype=dtype) for _ in range(3)]
    copy_all((destination, source) for destination in destinations)
    assert all(torch.equal(destination, source) for destination in destinations)


def test_layouts_that_are_not_plain_are_copied_by_value():
    source = torch.arange(6.0).view(2, 3)
    turned, conjugate = torch.zeros(3, 2), torch.zeros(2, dtype=torch.complex64)
    values = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)
    copy_all([(turned.t(), source), (conjugate, values.conj())])
    assert torch.equal(turned, source.t())
    assert conjugate.tolist() == [1 - 2j, 3 + 4j]


def test_nothing_to_copy_is_no_error():
    copy_all([])

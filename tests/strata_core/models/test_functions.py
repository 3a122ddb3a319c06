"""The hand-written derivatives inside the model, against numerical ones and torch's own kernels."""

import pytest
import torch
import torch.nn.functional as F

from strata_core.models.feed_forward import FeedForward
from strata_core.models.normalisation import RMSNorm


def test_the_norm_has_the_derivatives_that_differences_give():
    norm = RMSNorm(6, 1e-5).double()
    weight = torch.randn(6, dtype=torch.float64, requires_grad=True)
    states = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)

    def normalised(states, weight):
        return torch.func.functional_call(norm, {"weight": weight}, (states,))

    assert torch.autograd.gradcheck(normalised, (states, weight))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)])
def test_the_norm_equals_torchs_in_value_and_dtype(dtype, tolerance):
    norm = RMSNorm(32, 1e-5)
    states = torch.randn(4, 32).to(dtype)
    with torch.no_grad():
        norm.weight.normal_()
    expected = F.rms_norm(states.float(), (32,), norm.weight, 1e-5)
    assert norm(states).dtype == dtype
    torch.testing.assert_close(norm(states).float(), expected, rtol=tolerance, atol=tolerance)


def test_the_norm_of_a_zero_vector_is_zero_with_finite_gradient():
    norm = RMSNorm(4, 1e-5)
    states = torch.zeros(1, 4, requires_grad=True)
    norm(states).sum().backward()
    assert torch.isfinite(states.grad).all()


def test_the_feed_forward_layer_has_the_derivatives_that_differences_give():
    layer = FeedForward(4, 6).double()
    states = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]
    weights = [parameter.detach().clone().requires_grad_() for parameter in layer.parameters()]

    def fed(states, *weights):
        return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (states,))

    assert torch.autograd.gradcheck(fed, (states, *weights))

"""The chunked loss against torch's own cross-entropy on all scores at once."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from strata_core.objectives.next_token import next_token_loss, next_token_nats

ROWS, WIDTH, VOCABULARY = 37, 12, 50


def inputs(dtype: torch.dtype = torch.float32, rows: int = ROWS) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(rows, WIDTH, generator=generator).to(dtype).requires_grad_()
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator).to(dtype).requires_grad_()
    return states, weight, torch.randint(VOCABULARY, (rows,), generator=generator)


def direct(states: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(states @ weight.T, labels, reduction="sum")


@pytest.mark.parametrize("chunk_rows", [1, 5, 36, 37, 38, 1000])
def test_loss_and_gradients_equal_cross_entropy_for_any_chunk(chunk_rows):
    states, weight, labels = inputs(torch.float64)
    loss = next_token_loss(states, weight, labels, chunk_rows=chunk_rows)
    ours = torch.autograd.grad(loss * 0.3, (states, weight))
    expected = direct(states, weight, labels)
    theirs = torch.autograd.grad(expected * 0.3, (states, weight))
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)


def test_derivatives_are_those_that_differences_give():
    states, weight, _ = inputs(torch.float64, rows=5)
    weight = weight.detach()[:6].requires_grad_()
    labels = torch.tensor([0, 5, -100, 2, 2])
    assert torch.autograd.gradcheck(lambda s, w: next_token_loss(s, w, labels, chunk_rows=2), (states, weight))


@pytest.mark.parametrize("ignore_index", [-100, 7])
def test_ignored_rows_count_nothing(ignore_index):
    states, weight, labels = inputs(torch.float64)
    labels[torch.arange(0, ROWS, 3)] = ignore_index
    loss = next_token_loss(states, weight, labels, ignore_index=ignore_index, chunk_rows=8)
    ours = torch.autograd.grad(loss, (states, weight))
    kept = labels != ignore_index
    expected = direct(states[kept], weight, labels[kept])
    theirs = torch.autograd.grad(expected, (states, weight))
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)
    assert torch.equal(ours[0][~kept], torch.zeros_like(ours[0][~kept]))


def test_a_batch_of_ignored_rows_has_loss_and_gradient_zero():
    states, weight, _ = inputs()
    loss = next_token_loss(states, weight, torch.full((ROWS,), -100))
    ours = torch.autograd.grad(loss, (states, weight))
    assert loss.item() == 0
    assert all(torch.equal(gradient, torch.zeros_like(gradient)) for gradient in ours)


def test_no_rows_at_all_have_loss_and_gradient_zero():
    states, weight, labels = inputs(rows=0)
    loss = next_token_loss(states, weight, labels)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(weight.grad, torch.zeros_like(weight))
    assert next_token_nats(states, weight, labels).shape == (0,)


def test_rows_lose_what_cross_entropy_says_and_sum_to_the_loss():
    states, weight, labels = inputs()
    labels[4] = -100
    nats = next_token_nats(states, weight, labels, chunk_rows=10)
    torch.testing.assert_close(nats, F.cross_entropy(states @ weight.T, labels, reduction="none"))
    assert not nats.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(next_token_loss(states, weight, labels), nats.sum())


def test_scores_far_outside_the_range_of_exp_stay_finite():
    states, weight, labels = inputs()
    loss = next_token_loss(states * 1000, weight, labels)
    torch.testing.assert_close(loss, direct(states * 1000, weight, labels))


@pytest.mark.parametrize("frozen", ["states", "weight"])
def test_a_frozen_input_gets_no_gradient(frozen):
    states, weight, labels = inputs()
    (states if frozen == "states" else weight).requires_grad_(False)
    next_token_loss(states, weight, labels).backward()
    assert (states.grad is None) == (frozen == "states")
    assert (weight.grad is None) == (frozen == "weight")


def test_a_tied_weight_gathers_the_gradients_of_both_its_uses():
    _, weight, labels = inputs(torch.float64)
    tokens = labels.roll(1)
    ours = torch.autograd.grad(next_token_loss(weight[tokens], weight, labels, chunk_rows=6), weight)
    theirs = torch.autograd.grad(direct(weight[tokens], weight, labels), weight)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 2e-2), (torch.float16, 2e-3)])
def test_autocast_stays_close_to_float32_and_keeps_dtypes(dtype, tolerance):
    states, weight, labels = inputs()
    expected = direct(states, weight, labels)
    theirs = torch.autograd.grad(expected, (states, weight))
    with torch.autocast("cpu", dtype=dtype):
        loss = next_token_loss(states, weight, labels, chunk_rows=8)
    ours = torch.autograd.grad(loss, (states, weight))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=tolerance, atol=0)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - other).norm() < tolerance * other.norm()


def test_low_precision_states_get_gradients_of_their_own_dtype():
    states, weight, labels = inputs()
    low = states.detach().bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = next_token_loss(low, weight, labels)
    loss.backward()
    assert (low.grad.dtype, weight.grad.dtype) == (torch.bfloat16, torch.float32)


def test_the_scores_of_all_rows_never_exist_at_once():
    rows, vocabulary, chunk_rows = 4096, 1000, 64
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            for tensor in result if isinstance(result, tuple | list) else (result,):
                if isinstance(tensor, Tensor):
                    largest = max(largest, tensor.untyped_storage().nbytes())
            return result

    states = torch.randn(rows, 8, requires_grad=True)
    weight = torch.randn(vocabulary, 8, requires_grad=True)
    with Watch():
        next_token_loss(states, weight, torch.zeros(rows, dtype=torch.int64), chunk_rows=chunk_rows).backward()
    assert largest == chunk_rows * vocabulary * 4


def test_fake_tensors_pass_through():
    with FakeTensorMode():
        states = torch.empty(1000, WIDTH, requires_grad=True)
        weight = torch.empty(VOCABULARY, WIDTH, requires_grad=True)
        loss = next_token_loss(states, weight, torch.zeros(1000, dtype=torch.int64))
        loss.backward()
    assert states.grad.shape == states.shape
    assert weight.grad.shape == weight.shape


def test_compilation_traces_the_loss_in_one_graph():
    states, weight, labels = inputs()
    compiled = torch.compile(next_token_loss, backend="aot_eager", fullgraph=True)
    loss = compiled(states, weight, labels)
    ours = torch.autograd.grad(loss, (states, weight))
    expected = direct(states, weight, labels)
    theirs = torch.autograd.grad(expected, (states, weight))
    torch.testing.assert_close(loss, expected)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)

"""The knobs of the readback: at the first, the middle and the last step, and on which rows."""

import pytest
import torch

from strata_core.models.readback import Mixture, full_pass_readback, graph_object_alone, mixture_at


@pytest.mark.parametrize(
    ("step", "expected"), [(0, (1.0, 0.0)), (50, (0.6, 0.4)), (100, (0.2, 0.8)), (150, (0.2, 0.8))]
)
def test_the_anneal_moves_linearly_from_learned_to_object(step, expected):
    assert mixture_at(step, 101, final_learned_weight=0.2) == pytest.approx(expected)


def test_an_anneal_to_zero_ends_with_the_object_alone():
    assert mixture_at(9, 10, final_learned_weight=0.0) == Mixture(0.0, 1.0)


@pytest.mark.parametrize("step", [0, 50, 100])
def test_a_final_weight_of_one_adds_the_object_and_replaces_nothing(step):
    assert mixture_at(step, 101, final_learned_weight=1.0) == Mixture(1.0, 1.0)


@pytest.mark.parametrize("step", [0, 50, 100])
@pytest.mark.parametrize("final", [1.0, 0.0])
def test_a_fixed_weight_overrides_the_anneal(step, final):
    assert mixture_at(step, 101, final_learned_weight=final, fixed_learned_weight=0.25) == Mixture(0.25, 0.75)


def test_a_run_of_one_step_begins_the_anneal():
    assert mixture_at(0, 1, final_learned_weight=0.2) == Mixture(1.0, 0.0)


@pytest.mark.parametrize("mixture", [Mixture(0.25, 0.75), Mixture(torch.tensor(0.25), torch.tensor(0.75))])
def test_every_row_of_a_full_pass_is_read_with_the_mixture(mixture):
    readback = full_pass_readback(2, mixture)
    assert readback.learned_B.tolist() == [0.25, 0.25]
    assert readback.graph_object_B.tolist() == [0.75, 0.75]


def test_dropout_suppresses_the_learned_memory_at_its_rate():
    torch.manual_seed(3)
    readback = full_pass_readback(4000, Mixture(0.5, 0.5), learned_dropout=0.3)
    dropped = readback.learned_B == 0
    assert set(readback.learned_B.tolist()) == {0.0, 0.5}
    # Four standard errors.
    assert dropped.float().mean().item() == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / 4000) ** 0.5)
    assert torch.equal(readback.graph_object_B, torch.full((4000,), 0.5))
    torch.manual_seed(3)
    assert torch.equal(full_pass_readback(4000, Mixture(0.5, 0.5), learned_dropout=0.3).learned_B, readback.learned_B)


def test_without_dropout_no_random_number_is_drawn():
    before = torch.random.get_rng_state()
    full_pass_readback(4, Mixture(1.0, 1.0))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_role_edit_of_the_object_reads_it_alone():
    readback = graph_object_alone(3)
    assert readback.learned_B.tolist() == [0.0] * 3
    assert readback.graph_object_B.tolist() == [1.0] * 3

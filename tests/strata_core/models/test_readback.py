"""The knobs of the readback: at the first, the middle and the last step, and on which rows."""

import pytest
import torch

from strata_core.models.readback import Mixture, full_pass_readback, graph_object_alone, mixture_at

ANNOTATED = torch.tensor([True, False, True, False])


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


def test_only_annotated_rows_are_read_with_the_mixture():
    readback = full_pass_readback(ANNOTATED, Mixture(0.25, 0.75))
    assert readback.learned_B.tolist() == [0.25, 1.0, 0.25, 1.0]
    assert readback.graph_object_B.tolist() == [0.75, 1.0, 0.75, 1.0]


def test_dropout_suppresses_the_learned_memory_of_annotated_rows_at_its_rate():
    annotated = torch.arange(8000) % 2 == 0
    torch.manual_seed(3)
    readback = full_pass_readback(annotated, Mixture(0.5, 0.5), learned_dropout=0.3)
    dropped = readback.learned_B == 0
    assert not dropped[~annotated].any()
    assert set(readback.learned_B[annotated].tolist()) == {0.0, 0.5}
    # Four standard errors.
    assert dropped[annotated].float().mean().item() == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / 4000) ** 0.5)
    assert torch.equal(readback.graph_object_B, torch.where(annotated, 0.5, 1.0))
    torch.manual_seed(3)
    assert torch.equal(
        full_pass_readback(annotated, Mixture(0.5, 0.5), learned_dropout=0.3).learned_B, readback.learned_B
    )


def test_without_dropout_no_random_number_is_drawn():
    before = torch.random.get_rng_state()
    full_pass_readback(ANNOTATED, Mixture(1.0, 1.0))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_role_edit_of_the_object_reads_it_alone():
    readback = graph_object_alone(3)
    assert readback.learned_B.tolist() == [0.0] * 3
    assert readback.graph_object_B.tolist() == [1.0] * 3

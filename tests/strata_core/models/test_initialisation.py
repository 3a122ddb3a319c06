"""First values: their spread, and that they depend on seed and name alone."""

import math

import pytest
import torch
from torch import nn

from strata_core.models import LanguageModel, TransformerConfig, initialise

CONFIG = TransformerConfig(vocab_size=512, d_model=128, n_layers=3, n_heads=4, n_kv_heads=2, d_ff=256, max_seq_len=8)


def initialised(seed: int = 1, config: TransformerConfig = CONFIG) -> LanguageModel:
    model = LanguageModel(config)
    initialise(model, seed)
    return model


def test_matrices_are_normal_with_smaller_ones_where_a_branch_ends():
    for name, parameter in initialised().named_parameters():
        if parameter.ndim < 2:
            assert torch.equal(parameter, torch.ones_like(parameter))
            continue
        std = 0.02 / math.sqrt(6) if name.endswith(("attention.output.weight", "down.weight")) else 0.02
        # 4 standard errors of a standard deviation (std / sqrt(2 n)) and of a mean (std / sqrt(n)).
        assert parameter.std().item() == pytest.approx(std, abs=4 * std / math.sqrt(2 * parameter.numel()))
        assert parameter.mean().item() == pytest.approx(0, abs=4 * std / math.sqrt(parameter.numel()))


def test_the_same_seed_gives_the_same_values_and_another_seed_others():
    first, again, other = initialised(1), initialised(1), initialised(2)
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name))
        if parameter.ndim == 2:
            assert not torch.equal(parameter, other.get_parameter(name))


def test_an_added_module_moves_no_other_parameter():
    first = initialised()
    extended = LanguageModel(CONFIG)
    extended.add_module("head", nn.Linear(128, 7))
    initialise(extended, 1)
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, extended.get_parameter(name))
    assert torch.equal(extended.get_parameter("head.bias"), torch.zeros(7))


def test_a_module_can_ask_for_zeros():
    class Gate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def initial_stds(self) -> dict[str, float]:
            return {"inner.weight": 0.0}

    gate = Gate()
    initialise(gate, 1)
    assert torch.equal(gate.inner.weight, torch.zeros(3, 3))


def test_a_module_can_set_values_of_its_own_once_all_are_drawn():
    class ThereAndBack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.back = nn.Linear(5, 3, bias=False)
            self.there = nn.Linear(3, 5, bias=False)
            self.gate = nn.Parameter(torch.zeros(1))

        def finish_initial_values(self) -> None:
            self.back.weight.copy_(self.there.weight.T)
            self.gate.fill_(0.25)

    model = nn.Sequential(ThereAndBack())
    initialise(model, 1)
    assert torch.equal(model[0].back.weight, model[0].there.weight.T)
    assert model[0].there.weight.abs().max() > 0
    assert model[0].gate.item() == 0.25


def test_the_global_generator_is_left_alone():
    model = LanguageModel(CONFIG)
    before = torch.random.get_rng_state()
    initialise(model, 1)
    assert torch.equal(torch.random.get_rng_state(), before)

"""AdamW's groups, its state by name, and updates skipped on the device."""

import pytest
import torch
from torch import nn

from strata_core.errors import DataError
from strata_core.recipes.tables import OptimizerTable
from strata_core.training.optimizer import (
    build_optimizer,
    decays,
    load_optimizer_state,
    optimizer_state,
    set_rate,
    trainable_parameters,
)


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 2))


def train(model, optimizer, steps, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(5, 4, generator=generator)).square().sum().backward()
        optimizer.step()


def test_only_matrices_decay_and_no_thresholds_or_scales():
    matrix, vector = torch.zeros(2, 2), torch.zeros(2)
    assert decays("blocks.0.weight", matrix)
    assert not decays("blocks.0.bias", vector)
    assert not decays("head.threshold", matrix)
    assert not decays("head.link_scale", matrix)


def test_weight_decay_shrinks_matrices_alone():
    model = small_model()
    parameters = trainable_parameters(model)
    optimizer = build_optimizer(parameters, OptimizerTable(lr=0.1, weight_decay=0.5))
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    for parameter in parameters.values():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in parameters.items():
        # Decoupled decay with a zero gradient: p <- p * (1 - lr * decay).
        expected = before[name] * (1 - 0.1 * 0.5) if parameter.ndim == 2 else before[name]
        torch.testing.assert_close(parameter.detach(), expected)


def test_the_query_encoder_moves_by_its_share_of_the_rate():
    torch.manual_seed(0)
    model = nn.ModuleDict({"query_encoder": nn.Embedding(6, 4), "passing": nn.Linear(4, 3)})
    parameters = trainable_parameters(model)
    optimizer = build_optimizer(parameters, OptimizerTable(weight_decay=0.0), {"query_encoder.": 0.25})
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    model["passing"](model["query_encoder"](torch.arange(6))).square().sum().backward()
    set_rate(optimizer, 0.04)
    optimizer.step()
    for name, parameter in parameters.items():
        # Adam's first step is rate * gradient / |gradient|.
        rate = 0.01 if name.startswith("query_encoder.") else 0.04
        expected = before[name] - rate * parameter.grad.sign()
        torch.testing.assert_close(parameter.detach(), expected, rtol=0, atol=1e-5, msg=name)


def test_an_update_with_found_inf_changes_neither_weights_nor_moments():
    model = small_model()
    parameters = trainable_parameters(model)
    optimizer = build_optimizer(parameters, OptimizerTable())
    train(model, optimizer, 2)
    weights = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    state = {name: tensor.clone() for name, tensor in optimizer_state(optimizer, parameters).items()}
    for parameter in parameters.values():
        parameter.grad = torch.full_like(parameter, float("nan"))
    optimizer.found_inf = torch.tensor(1.0)
    optimizer.step()
    assert all(torch.equal(weights[name], parameter) for name, parameter in parameters.items())
    after = optimizer_state(optimizer, parameters)
    assert all(torch.equal(state[name], after[name]) for name in state)


def test_state_saved_with_a_frozen_layer_loads_into_a_model_that_trains_it_and_back():
    model = small_model()
    for parameter in model[0].parameters():
        parameter.requires_grad = False
    parameters = trainable_parameters(model)
    optimizer = build_optimizer(parameters, OptimizerTable())
    train(model, optimizer, 3)
    saved = optimizer_state(optimizer, parameters)
    assert {name.rsplit(".", 1)[0] for name in saved} == {"1.weight", "1.bias", "2.weight", "2.bias"}

    thawed = small_model()
    all_parameters = trainable_parameters(thawed)
    other = build_optimizer(all_parameters, OptimizerTable())
    load_optimizer_state(other, all_parameters, saved)
    assert torch.equal(other.state[thawed[2].weight]["exp_avg"], saved["2.weight.exp_avg"])
    assert thawed[0].weight not in other.state
    train(thawed, other, 1)

    back = optimizer_state(other, all_parameters)
    again = build_optimizer(parameters, OptimizerTable())
    load_optimizer_state(again, parameters, back)
    assert torch.equal(again.state[model[2].weight]["exp_avg"], back["2.weight.exp_avg"])


def test_state_of_another_shape_is_refused_by_name():
    model = small_model()
    parameters = trainable_parameters(model)
    optimizer = build_optimizer(parameters, OptimizerTable())
    state = {"0.weight.exp_avg": torch.zeros(9), "0.weight.exp_avg_sq": torch.zeros(9), "0.weight.step": torch.ones(())}
    with pytest.raises(DataError, match=r"0\.weight\.exp_avg"):
        load_optimizer_state(optimizer, parameters, state)

"""Composition by levels, against composing each bracketing by itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from strata_core.errors import DataError
from strata_core.models import initialise
from strata_core.models.graphs.path_composition import CELLS, CompositionConfig, PathComposition
from strata_core.tasks.registry import model_from_config
from strata_core.tasks.relation_prediction.bracketing import lay_out_trees


def model_of(cell: str) -> PathComposition:
    model = PathComposition(CompositionConfig(n_relations=7, n_targets=5, d_model=16, composition=cell))
    initialise(model, seed=3)
    return model.double().eval()


def composed(model: PathComposition, path: list[int], priorities: list[float]) -> torch.Tensor:
    """The last merge is the gap of the highest priority; what is left and right of it is composed first."""
    if len(path) == 1:
        return model.norm(model.relations.weight[path[0]][None])
    gap = int(np.argsort(priorities, kind="stable")[-1])
    left = composed(model, path[: gap + 1], priorities[:gap])
    right = composed(model, path[gap + 1 :], priorities[gap + 1 :])
    return model.norm(model.cell(left, right))


def random_batch(seed: int):
    rng = np.random.default_rng(seed)
    paths = [rng.integers(7, size=length).tolist() for length in rng.integers(1, 11, size=6)]
    lengths = np.array([len(path) for path in paths])
    priorities = rng.random((len(paths), 10))
    trees = lay_out_trees(np.cumsum(lengths) - lengths, lengths, priorities, int(lengths.sum()))
    relations = torch.tensor(list(itertools.chain(*paths)))
    return paths, priorities, (relations, torch.from_numpy(trees.pairs_LW2), torch.from_numpy(trees.roots_T))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("seed", range(4))
def test_every_bracketing_is_composed_as_it_would_be_alone(cell, seed):
    model = model_of(cell)
    paths, priorities, inputs = random_batch(seed)
    found = model(*inputs)
    for path, row, state in zip(paths, priorities, found, strict=True):
        expected = composed(model, path, row[: len(path) - 1].tolist())[0]
        torch.testing.assert_close(state, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_are_those_of_composing_one_by_one(cell):
    model = model_of(cell)
    paths, priorities, inputs = random_batch(11)
    model.scores(model(*inputs)).square().sum().backward()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    for path, row in zip(paths, priorities, strict=True):
        model.scores(composed(model, path, row[: len(path) - 1].tolist())).square().sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-8, atol=1e-8)


def test_shapes_follow_from_the_inputs_alone():
    _, _, inputs = random_batch(5)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        model = PathComposition(CompositionConfig(n_relations=7, n_targets=5, d_model=16))
        states = model(*(mode.from_tensor(tensor) for tensor in inputs))
        model.scores(states).sum().backward()
    assert states.shape == (6, 16)


def test_a_checkpoint_s_config_gives_the_model_back():
    config = CompositionConfig(n_relations=7, n_targets=5, d_model=16, composition="gru", dropout=0.1)
    model = model_from_config({"kind": "path-composition", "model": config.to_dict()})
    assert isinstance(model, PathComposition)
    assert model.config == config


def test_an_unknown_cell_or_field_is_refused():
    shape = CompositionConfig(n_relations=7, n_targets=5).to_dict()
    with pytest.raises(DataError, match="'lstm'"):
        CompositionConfig.from_dict({**shape, "composition": "lstm"})
    with pytest.raises(DataError, match="depth"):
        CompositionConfig.from_dict({**shape, "depth": 3})


def test_composed_relations_have_the_size_of_relations():
    model = model_of("mlp")
    _, _, inputs = random_batch(2)
    sizes = model(*inputs).square().mean(dim=-1)
    torch.testing.assert_close(sizes, torch.ones_like(sizes), rtol=1e-3, atol=1e-3)

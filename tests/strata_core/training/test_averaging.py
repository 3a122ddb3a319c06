"""The running average of the weights: its formula, and that it is what a run evaluates and saves."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn

from strata_core.errors import DataError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.launch import starting as launch
from strata_core.recipes import load_recipe
from strata_core.tasks.data import open_data
from strata_core.tasks.registry import make_task
from strata_core.training.averaging import WeightAverage
from strata_core.training.checkpoint import model_tensors
from tests.drills.test_kill_and_resume import tiny_recipe_toml


def average_by_hand(weights: list[np.ndarray], decay: float) -> np.ndarray:
    average = weights[0].astype(np.float64)
    for step, weight in enumerate(weights[1:]):
        kept = min(decay, (1 + step) / (10 + step))
        average = kept * average + (1 - kept) * weight
    return average


def test_the_average_is_the_weighted_mean_written_out_by_hand():
    parameter = nn.Parameter(torch.tensor([1.0, -2.0]))
    average = WeightAverage({"w": parameter}, 0.25)
    values = [np.array([1.0, -2.0]), np.array([3.0, 0.5]), np.array([-1.0, 4.0]), np.array([2.0, 2.0])]
    for step, value in enumerate(values[1:]):
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(value))
        average.update(step)
    # Kept of the old average: 1/10, 2/11, 3/12 = 0.25.
    first = 0.1 * values[0] + 0.9 * values[1]
    second = 2 / 11 * first + 9 / 11 * values[2]
    third = 0.25 * second + 0.75 * values[3]
    np.testing.assert_allclose(average.averages()["w"].numpy(), third, rtol=1e-6)
    np.testing.assert_allclose(average_by_hand(values, 0.25), third, rtol=1e-12)


def test_the_model_has_the_average_meanwhile_and_its_own_weights_afterwards():
    parameter = nn.Parameter(torch.tensor([1.0, 2.0]))
    average = WeightAverage({"w": parameter}, 0.5)
    with torch.no_grad():
        parameter.copy_(torch.tensor([11.0, 12.0]))
    average.update(0)
    mean = average.averages()["w"].clone()
    with pytest.raises(KeyError), average.in_place():
        assert torch.equal(parameter, mean)
        raise KeyError
    assert parameter.tolist() == [11.0, 12.0]
    assert torch.equal(average.averages()["w"], mean)


def test_without_a_decay_there_is_no_average():
    average = WeightAverage({"w": nn.Parameter(torch.ones(2))}, 0.0)
    average.update(0)
    with average.in_place():
        pass
    average.load({})
    assert average.averages() == average.iterates() == {}


@pytest.mark.parametrize("saved", [{}, {"w.iterate": torch.ones(3)}], ids=["missing", "of another shape"])
def test_saved_weights_that_do_not_fit_are_refused_and_nothing_changes(saved):
    parameter = nn.Parameter(torch.ones(2))
    average = WeightAverage({"w": parameter}, 0.5)
    with pytest.raises(DataError, match=r"w\.iterate"):
        average.load(saved)
    assert parameter.tolist() == [1.0, 1.0]


def test_a_run_saves_and_evaluates_the_average_of_the_weights_it_went_through(byte_corpus, tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny_recipe_toml(byte_corpus))
    settings = ["optimizer.average_decay=0.6", "run.max_steps=6", "checkpoint.every=1", "checkpoint.keep_last=9"]
    run = tmp_path / "run"
    launch.train(load_recipe(tmp_path / "tiny.toml", "lm", [*settings, "evaluation.every=3"]), run, device="cpu")
    plain = tmp_path / "plain"
    short = ["run.max_steps=6", "checkpoint.every=1", "checkpoint.keep_last=9", "evaluation.every=3"]
    launch.train(load_recipe(tmp_path / "tiny.toml", "lm", short), plain, device="cpu")

    def tensors(folder, step, file):
        return load_file(folder / "checkpoints" / f"step-{step:08d}" / f"{file}.safetensors")

    # Averaging leaves training itself alone, so the run without it tells what there was to average.
    names = tensors(plain, 1, "model").keys()
    for step in range(1, 7):
        iterates = tensors(run, step, "optimizer")
        for name in names:
            np.testing.assert_array_equal(iterates[f"{name}.iterate"], tensors(plain, step, "model")[name])
    recipe = load_recipe(tmp_path / "tiny.toml", "lm", short)
    start = model_tensors(make_task(recipe, open_data(recipe)).build_model())
    for name in names:
        went_through = [start[name].numpy(), *(tensors(plain, step, "model")[name] for step in range(1, 7))]
        np.testing.assert_allclose(
            tensors(run, 6, "model")[name], average_by_hand(went_through, 0.6), rtol=1e-5, atol=1e-7
        )
    told = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    found = evaluate_trained(run, choose="6").metrics
    assert told[-1]["loss"] == pytest.approx(found["loss"], rel=1e-6)
    others = [json.loads(line) for line in (plain / "evaluations.jsonl").read_text().splitlines()]
    assert told[-1]["loss"] != others[-1]["loss"]

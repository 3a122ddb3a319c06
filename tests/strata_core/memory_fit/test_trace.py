"""Predictions on fake tensors against torch's own tracker on real ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.distributed._tools.mem_tracker import MemTracker

from strata_core.memory_fit.trace import StepMemory, trace_step
from strata_core.recipes.lm import LMRecipe
from strata_core.training.distributed import ALONE
from strata_core.training.precision import Precision
from strata_core.training.step import TrainingStep
from strata_core.training.task import Task
from tests.strata_core.memory_fit.stand_ins import RowsTask, language_model_task, recipe

CPU = torch.device("cpu")


def traced(task: Task, settings: LMRecipe, world_size: int = 1) -> StepMemory:
    precision = Precision(settings.run.precision, settings.run.precision)
    return trace_step(task, settings, device=CPU, precision=precision, world_size=world_size, granule_bytes=1)


def measured_bytes(task: Task, settings: LMRecipe) -> int:
    """The peak of two real steps by torch's MemTracker."""
    tracker = MemTracker()
    with tracker:
        model = task.build_model()
        precision = Precision(settings.run.precision, settings.run.precision)
        step = TrainingStep(task, model, settings, CPU, ALONE, precision)
        for number in range(2):
            plan = task.plan(number)

            def batches(micro_batches: Any = plan.micro_batches) -> Any:
                for micro_batch in micro_batches:
                    tracker.reset_mod_stats()
                    yield task.fetch(micro_batch)

            sums = step.accumulate(plan, batches(), number)
            step.update(sums.sum(dim=0), 1e-3, number)
    return tracker.get_tracker_snapshot("peak")[CPU]["Total"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"batch__micro_batch_size": 8},
        {"batch__micro_batch_size": 1},
        {"model__dropout": 0.1},
        {"optimizer__average_decay": 0.9},
        {"model__n_kv_heads": 2},
        {"model__tie_embeddings": False},
        {"model__n_layers": 1, "batch__seq_len": 300},
        {"batch__mask_documents": True},
        {"memory__recompute": "blocks", "model__dropout": 0.1},
        {"distributed__exact_reduction": True, "batch__micro_batch_size": 1},
        {"run__precision": "bf16"},
        {"run__precision": "bf16", "memory__recompute": "blocks"},
        {"run__precision": "fp16"},
    ],
    ids=lambda changes: " ".join(f"{key}={value}" for key, value in changes.items()) or "plain",
)
def test_the_predicted_peak_is_that_of_real_steps(changes: dict[str, Any]) -> None:
    settings = recipe(**changes)
    predicted = sum(traced(language_model_task(settings), settings).parts.values())
    measured = measured_bytes(language_model_task(settings), settings)
    assert 0.99 * measured <= predicted <= 1.02 * measured


def test_weights_and_optimizer_are_four_and_eight_bytes_a_parameter() -> None:
    settings = recipe()
    parameters = sum(each.numel() for each in language_model_task(settings).build_model().parameters())
    found = traced(language_model_task(settings), settings)
    tensors = len(list(language_model_task(settings).build_model().parameters()))
    assert found.parts["weights"] == 4 * parameters
    assert found.parts["optimizer"] == 8 * parameters + 4 * tensors
    assert found.checkpoint_bytes == 12 * parameters + 4 * tensors


def test_an_average_is_four_bytes_a_parameter_more_in_memory_and_in_a_checkpoint() -> None:
    plain, averaged = recipe(), recipe(optimizer__average_decay=0.5)
    parameters = sum(each.numel() for each in language_model_task(plain).build_model().parameters())
    before, after = (traced(language_model_task(each), each) for each in (plain, averaged))
    assert after.parts["optimizer"] - before.parts["optimizer"] == 4 * parameters
    assert after.checkpoint_bytes - before.checkpoint_bytes == 4 * parameters


def test_several_ranks_add_buckets_of_four_bytes_a_parameter() -> None:
    settings = recipe()
    found = traced(language_model_task(settings), settings, world_size=2)
    assert found.parts["buckets"] == found.parts["weights"]


def test_saved_activations_grow_by_the_same_amount_with_each_layer() -> None:
    saved = []
    for n_layers in (2, 3, 4):
        settings = recipe(model__n_layers=n_layers)
        saved.append(traced(language_model_task(settings), settings).parts["saved_activations"])
    assert saved[2] - saved[1] == saved[1] - saved[0] > 0


def test_a_task_never_seen_is_followed_through_its_interface_alone() -> None:
    settings = recipe(batch__batch_size=2, batch__micro_batch_size=1)
    found = traced(RowsTask([1000, 1000]), settings)
    assert found.parts["weights"] == found.parts["gradients"] == 64 * 128 * 4
    assert found.parts["batch"] == 1000 * 64 * 4
    assert found.parts["saved_activations"] == 1000 * 128 * 4
    assert not found.on_real_tensors


def test_the_largest_micro_batch_of_a_step_decides() -> None:
    settings = recipe(batch__batch_size=3, batch__micro_batch_size=1)
    assert traced(RowsTask([10, 1000, 20]), settings).parts["batch"] == 1000 * 64 * 4


def test_an_evaluation_that_takes_more_than_a_step_decides() -> None:
    settings = recipe(batch__batch_size=2, batch__micro_batch_size=1, evaluation__every=1)
    task = RowsTask([1, 1], evaluation_rows=5000)
    assert sum(traced(task, settings).parts.values()) > 5000 * (64 + 128) * 4
    never = recipe(batch__batch_size=2, batch__micro_batch_size=1)
    assert sum(traced(task, never).parts.values()) < 5000 * 64 * 4


def test_shapes_that_depend_on_values_are_followed_on_real_tensors() -> None:
    settings = recipe(batch__batch_size=2, batch__micro_batch_size=1)
    found = traced(RowsTask([1000, 1000], selects=True), settings)
    assert found.on_real_tensors
    assert found.parts["saved_activations"] >= 1000 * 128 * 4


def test_following_a_step_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    settings = recipe(model__dropout=0.1)
    traced(language_model_task(settings), settings)
    assert torch.equal(torch.get_rng_state(), before)

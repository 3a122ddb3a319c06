from __future__ import annotations

import resource

import pytest

from strata_core.errors import MemoryFitError, RecipeError
from strata_core.memory_fit import MemoryPlan, require_fit
from strata_core.memory_fit.prediction import PART_NAMES, predict_memory, with_settings
from strata_core.recipes.lm import LMRecipe
from tests.strata_core.memory_fit.stand_ins import RowsTask, language_model_task, recipe

PLENTY_BYTES = 2**50
ACTIVE = {"batch__batch_size": 16, "batch__micro_batch_size": 16, "batch__seq_len": 128, "model__n_layers": 3}
"""Settings whose activations outweigh everything else."""


def predicted(settings: LMRecipe, budget_bytes: int = PLENTY_BYTES, **options: object) -> MemoryPlan:
    arguments = {"device_type": "cpu", **options}
    return predict_memory(language_model_task, settings, device_memory_bytes=budget_bytes, **arguments)  # type: ignore[arg-type]


def peak_of(settings: LMRecipe, size: int) -> int:
    return predicted(with_settings(settings, {"batch.micro_batch_size": size})).predicted_peak_bytes


def test_every_part_is_named_and_they_add_up() -> None:
    plan = predicted(recipe())
    assert tuple(plan.parts) == PART_NAMES
    assert plan.predicted_peak_bytes == sum(plan.parts.values())
    assert plan.fits
    assert plan.remedies == ()
    assert plan.largest_micro_batch_size == 8


def test_the_largest_micro_batch_is_the_one_that_trying_all_finds() -> None:
    settings = recipe(**ACTIVE)
    peaks = {size: peak_of(settings, size) for size in (1, 2, 4, 8, 16)}
    for budget_bytes in (peaks[1] - 1, peaks[2], peaks[8] - 1, peaks[16]):
        fitting = [size for size, peak in peaks.items() if peak <= budget_bytes]
        assert predicted(settings, budget_bytes).largest_micro_batch_size == max(fitting, default=0)


def test_every_remedy_fits_when_it_is_predicted_anew() -> None:
    settings = recipe(**ACTIVE)
    budget_bytes = (peak_of(settings, 16) + peak_of(settings, 1)) // 2
    plan = predicted(settings, budget_bytes)
    assert not plan.fits
    assert list(plan.remedies[0].changes) == ["batch.micro_batch_size"]
    assert any("batch.seq_len" in remedy.changes for remedy in plan.remedies)
    for remedy in plan.remedies:
        again = predicted(with_settings(settings, remedy.changes), budget_bytes)
        assert again.fits
        assert again.predicted_peak_bytes == remedy.predicted_peak_bytes


def test_recomputation_is_a_remedy_on_a_gpu() -> None:
    settings = recipe(**ACTIVE)
    whole = predicted(settings, device_type="cuda").predicted_peak_bytes
    plan = predicted(settings, whole - 2**20, device_type="cuda")
    assert {"memory.recompute": "blocks"} in [dict(remedy.changes) for remedy in plan.remedies]


def test_a_run_that_has_started_is_given_only_remedies_that_it_may_still_take() -> None:
    settings = recipe(**ACTIVE)
    whole = predicted(settings, device_type="cuda").predicted_peak_bytes
    started = {"device_type": "cuda", "changeable": frozenset({"memory.recompute", "run.max_steps"})}
    plan = predicted(settings, whole - 2**20, **started)
    assert [dict(remedy.changes) for remedy in plan.remedies] == [{"memory.recompute": "blocks"}]
    with pytest.raises(MemoryFitError) as caught:
        require_fit(predicted(settings, 2**20, **started))
    assert caught.value.hint == "use a device with more memory"


def test_where_the_weights_alone_are_too_much_there_is_no_remedy() -> None:
    plan = predicted(recipe(), 2**20)
    assert plan.largest_micro_batch_size == 0
    assert plan.remedies == ()


def test_a_checkpoint_copy_counts_on_the_host_and_not_on_a_gpu() -> None:
    on_host, on_gpu = predicted(recipe()), predicted(recipe(), device_type="cuda")
    assert on_host.parts["snapshot"] >= 3 * on_host.parts["weights"]
    assert on_gpu.parts["snapshot"] == 0


def test_a_gpu_that_is_not_there_can_be_planned_for() -> None:
    plan = predicted(recipe(run__precision="bf16"), device_type="cuda")
    assert plan.device == "cuda"
    assert plan.allocator_peak_bytes < plan.predicted_peak_bytes


def test_more_ranks_mean_more_memory_and_a_smaller_largest_micro_batch() -> None:
    settings = recipe(batch__micro_batch_size=2)
    alone, among_four = predicted(settings), predicted(settings, world_size=4)
    assert among_four.parts["buckets"] > alone.parts["buckets"] == 0
    assert alone.largest_micro_batch_size == 8
    assert among_four.largest_micro_batch_size == 2


def test_a_batch_that_ranks_cannot_share_is_a_fault_of_the_recipe() -> None:
    with pytest.raises(RecipeError, match="cannot share"):
        predicted(recipe(), world_size=3)


def test_a_run_that_has_started_is_told_to_change_its_ranks_alone() -> None:
    """A batch of 8 in micro-batches of 2 is four, which 1, 2 or 4 ranks share."""
    settings = recipe(batch__micro_batch_size=2)
    with pytest.raises(RecipeError) as caught:
        predicted(settings, world_size=3, changeable=frozenset({"run.max_steps"}))
    assert caught.value.hint == "launch as many ranks as divide 4: 1, 2, 4"
    with pytest.raises(RecipeError, match="cannot share") as caught:
        predicted(settings, world_size=3)
    assert caught.value.hint == (
        "launch as many ranks as divide 4: 1, 2, 4; or make batch.batch_size a multiple of batch.micro_batch_size x 3"
    )
    exact = recipe(batch__micro_batch_size=1, batch__batch_size=6, distributed__exact_reduction=True)
    with pytest.raises(RecipeError, match="power of two") as caught:
        predicted(exact, world_size=3, changeable=frozenset())
    assert caught.value.hint == "launch 1, 2, 4, 8, ... ranks"
    static = recipe(batch__micro_batch_size=2, distributed__static_graph=True)
    with pytest.raises(RecipeError, match="static_graph") as caught:
        predicted(static, world_size=2, changeable=frozenset())
    assert caught.value.hint == "launch one rank, or 4"


def test_compiling_is_predicted_uncompiled_and_says_so() -> None:
    plain, compiled = predicted(recipe()), predicted(recipe(run__compile=True))
    assert compiled.parts == plain.parts
    assert any("uncompiled" in note for note in compiled.notes)


def test_a_model_larger_than_the_machine_is_predicted_without_allocating_it() -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plan = predicted(recipe(model__d_model=16384, model__n_heads=128, model__n_layers=4))
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert plan.parts["weights"] > 40 * 2**30
    assert grown_kib < 300 * 2**10


def test_a_task_of_another_kind_is_planned_for_too() -> None:
    settings = recipe(batch__batch_size=2, batch__micro_batch_size=1)
    plan = predict_memory(
        lambda changed: RowsTask([100] * (2 // changed.batch.micro_batch_size)),
        settings,
        device_type="cpu",
        device_memory_bytes=PLENTY_BYTES,
    )
    assert plan.parts["weights"] == 64 * 128 * 4
    assert plan.largest_micro_batch_size == 2


def test_a_process_that_already_holds_more_than_one_that_has_only_started_is_counted_as_it_is():
    settings = recipe()
    fresh = predicted(settings, device_type="cpu").parts
    little = predicted(settings, device_type="cpu", resident_bytes=100 * 2**20).parts
    much = predicted(settings, device_type="cpu", resident_bytes=400 * 2**20).parts
    assert little == fresh
    assert much["overhead"] - fresh["overhead"] == (400 + 112 - 352) * 2**20
    assert {**much, "overhead": 0} == {**fresh, "overhead": 0}

import json

import pytest

from strata_core.errors import MemoryFitError
from strata_core.memory_fit import MemoryPlan, Remedy, require_fit

MIB = 2**20


def plan(budget_bytes: int, remedies: tuple[Remedy, ...] = ()) -> MemoryPlan:
    return MemoryPlan(
        device="cuda",
        budget_bytes=budget_bytes,
        parts={"weights": 40 * MIB, "saved_activations": 50 * MIB, "overhead": 10 * MIB},
        allocator_peak_bytes=90 * MIB,
        largest_micro_batch_size=2,
        remedies=remedies,
    )


def test_the_peak_is_the_sum_of_the_parts_and_fits_up_to_the_last_byte() -> None:
    assert plan(100 * MIB).predicted_peak_bytes == 100 * MIB
    assert plan(100 * MIB).fits
    assert not plan(100 * MIB - 1).fits


def test_a_plan_is_json_with_the_keys_that_others_read() -> None:
    remedy = Remedy({"batch.micro_batch_size": 2}, 60 * MIB, "smaller")
    memory = json.loads(json.dumps(plan(64 * MIB, (remedy,)).as_json()))
    assert memory["device"] == "cuda"
    assert memory["budget_bytes"] == 64 * MIB
    assert memory["predicted_peak_bytes"] == sum(memory["parts"].values()) == 100 * MIB
    assert memory["fits"] is False
    assert memory["largest_micro_batch_size"] == 2
    assert memory["remedies"][0]["changes"] == {"batch.micro_batch_size": 2}


def test_a_run_that_fits_is_let_through() -> None:
    require_fit(plan(100 * MIB))


def test_a_refusal_names_need_budget_largest_part_and_remedies() -> None:
    remedy = Remedy({"batch.micro_batch_size": 2, "memory.recompute": "blocks"}, 60 * MIB, "slower")
    with pytest.raises(MemoryFitError) as caught:
        require_fit(plan(64 * MIB, (remedy,)))
    assert caught.value.exit_code == 3
    for fact in ("100.0 MiB", "64.0 MiB", "saved activations 50.0 MiB"):
        assert fact in caught.value.message
    assert caught.value.hint is not None
    assert "--set batch.micro_batch_size=2 --set memory.recompute=blocks needs 60.0 MiB" in caught.value.hint


def test_a_refusal_without_remedy_still_says_what_to_do() -> None:
    with pytest.raises(MemoryFitError) as caught:
        require_fit(plan(1))
    assert caught.value.hint

import torch

from strata_core.memory_fit import MemoryPlan
from strata_core.memory_fit.measure import predicted_and_measured


def test_prediction_and_measurement_of_the_process_stand_side_by_side() -> None:
    plan = MemoryPlan("cpu", 10**9, {"weights": 7, "overhead": 5}, allocator_peak_bytes=7, largest_micro_batch_size=1)
    figures = predicted_and_measured(plan, torch.device("cpu"))
    assert figures["predicted_bytes"] == 12
    assert figures["measured_bytes"] > 50 * 2**20

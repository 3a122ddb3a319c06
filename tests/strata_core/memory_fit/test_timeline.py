import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from strata_core.memory_fit.timeline import Timeline


def test_the_peak_is_what_was_held_together_not_what_was_made() -> None:
    with Timeline("cpu") as timeline:
        first = torch.zeros(1000)
        del first
        second = torch.zeros(500)
        third = torch.zeros(300)
        del second, third
    assert sum(timeline.parts_at_peak().values()) == 4000


def test_views_and_in_place_operations_take_nothing() -> None:
    with Timeline("cpu") as timeline:
        base = torch.zeros(100)
        base.view(10, 10).t().add_(1)
    assert sum(timeline.parts_at_peak().values()) == 400


def test_sizes_are_rounded_up_to_the_granule_of_the_allocator() -> None:
    with Timeline("cpu", granule_bytes=512) as timeline:
        kept = [torch.zeros(1), torch.zeros(129)]
    assert len(kept) == 2
    assert sum(timeline.parts_at_peak().values()) == 512 + 1024


def test_a_label_counts_for_the_whole_life_of_a_storage() -> None:
    with Timeline("cpu") as timeline:
        tensor = torch.zeros(10)
        peak = torch.zeros(20)
        del peak
        timeline.label([tensor], "kept")
    assert timeline.parts_at_peak()["kept"] == 40


def test_parts_of_a_forward_and_backward_worked_out_by_hand() -> None:
    # Saved for backward: the rows (the batch), and t = tanh(rows @ W), which tanh and the square both keep.
    with FakeTensorMode(), Timeline("cpu") as timeline:
        model = nn.Sequential(nn.Linear(8, 16, bias=False), nn.Tanh())
        timeline.label(model.parameters(), "weights")
        timeline.watch_model(model)
        rows = torch.zeros(100, 8)
        timeline.label([rows], "batch")
        loss = model(rows).square().sum()
        del rows
        loss.backward()
    parts = timeline.parts_at_peak()
    assert parts["weights"] == 8 * 16 * 4
    assert parts["batch"] == 100 * 8 * 4
    assert parts["saved_activations"] == 100 * 16 * 4
    # At the peak, in backward, there is at least the gradient of t besides.
    assert parts["largest_transient"] >= 100 * 16 * 4

"""The worth of a selection of paths, against counts by hand."""

import pytest
import torch

from strata_core.evaluation.path_selection import selection_f1


def test_set_f1_counts_supporting_paths_that_were_never_candidates_and_is_1_for_nothing_wanted_or_selected():
    owners = torch.tensor([0, 0, 0, 1, 3])
    selected = torch.tensor([True, True, False, False, True])
    supports = torch.tensor([True, False, True, False, False])
    f1 = selection_f1(selected, supports, owners, torch.tensor([3, 0, 1, 0]))
    # Example 0: 1 right of 2 selected and 3 wanted: 2 / 5. Nothing and nothing: 1. Nothing of 1: 0. 1 of none: 0.
    assert f1.tolist() == pytest.approx([0.4, 1.0, 0.0, 0.0])

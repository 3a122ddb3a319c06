from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strata_core.audit.difference import Difference, compare_checkpoints

torch = pytest.importorskip("torch")


def compared(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> Difference:
    torch.save(old, tmp_path / "old.pt")
    torch.save(new, tmp_path / "new.pt")
    return compare_checkpoints(tmp_path / "old.pt", tmp_path / "new.pt")


def test_equal_checkpoints_have_no_difference(tmp_path: Path) -> None:
    value = {"w": torch.randn(5, 3), "nan": torch.tensor([float("nan")]), "i": torch.arange(4), "e": torch.zeros(0, 2)}
    found = compared(tmp_path, value, value)
    assert found.equal == 4
    assert not (found.changed or found.added or found.removed or found.reshaped or found.retyped or found.not_compared)


def test_every_kind_of_difference_is_named(tmp_path: Path) -> None:
    old = {"gone": torch.ones(1), "shape": torch.ones(2, 3), "type": torch.ones(2), "w": torch.zeros(40, 50)}
    new = {"more": torch.ones(1), "shape": torch.ones(3, 2), "type": torch.ones(2).half(), "w": torch.zeros(40, 50)}
    new["w"][7, 3], new["w"][39, 49] = 0.5, -2.0
    found = compared(tmp_path, old, new)
    assert (found.added, found.removed) == (["more"], ["gone"])
    assert found.reshaped == [{"name": "shape", "old": [2, 3], "new": [3, 2]}]
    assert found.retyped == [{"name": "type", "old": "float32", "new": "float16"}]
    assert found.changed == [{"name": "w", "count": 2, "largest_difference": 2.0, "first_index": [7, 3]}]


@pytest.mark.parametrize(
    "kind",
    [
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.complex64,
        torch.int32,
        torch.uint8,
        torch.bool,
    ],
)
def test_every_element_type_is_compared(kind: Any, tmp_path: Path) -> None:
    old = torch.zeros(9).to(kind)
    new = old.clone()
    new[4] = 1
    found = compared(tmp_path, {"w": old}, {"w": new})
    assert found.changed == [{"name": "w", "count": 1, "largest_difference": 1.0, "first_index": [4]}]


def test_layouts_of_one_tensor_compare_equal(tmp_path: Path) -> None:
    value = torch.randn(6, 4, 5)
    turned = value.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    found = compared(tmp_path, {"w": value, "x": torch.ones(3, 4)}, {"w": turned, "x": torch.ones(1).expand(3, 4)})
    assert found.equal == 2


def test_a_number_that_became_nan_has_no_largest_difference(tmp_path: Path) -> None:
    found = compared(tmp_path, {"w": torch.zeros(3)}, {"w": torch.tensor([0.0, float("nan"), 0.0])})
    assert found.changed == [{"name": "w", "count": 1, "largest_difference": None, "first_index": [1]}]


def test_changes_beyond_the_first_megabyte_are_found(tmp_path: Path) -> None:
    old = torch.zeros(1_000_003)
    new = old.clone()
    new[1_000_002] = 1
    found = compared(tmp_path, {"w": old}, {"w": new})
    assert found.changed[0]["first_index"] == [1_000_002]

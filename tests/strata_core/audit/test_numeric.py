from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata_core.audit.dtypes import ELEMENT_TYPES
from strata_core.audit.elements import decode
from tests.strata_core.audit.building import archive, floats, inspected, program, table, tensor, zipped

torch = pytest.importorskip("torch")

NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


@pytest.mark.parametrize("name", NARROW)
def test_every_bit_pattern_of_a_narrow_float_has_the_value_torch_gives_it(name: str) -> None:
    width = ELEMENT_TYPES[name].bits // 8
    codes = np.arange(1 << 8 * width, dtype=f"u{width}")
    due = torch.from_numpy(codes.view(f"i{width}")).view(getattr(torch, name)).float().numpy()
    found = decode(codes.view(np.uint8), ELEMENT_TYPES[name])
    assert np.array_equal(found, due, equal_nan=True)
    finite = codes[np.isfinite(due)]
    assert np.array_equal(decode(finite.view(np.uint8), ELEMENT_TYPES[name]), due[np.isfinite(due)])


def test_exponent_only_floats_are_powers_of_two() -> None:
    found = decode(np.array([0, 127, 130, 255], np.uint8), ELEMENT_TYPES["float8_e8m0fnu"])
    assert found[:3].tolist() == [2.0**-127, 1.0, 8.0]
    assert math.isnan(found[3])


def test_four_bit_floats_are_unpacked_low_half_first() -> None:
    """The values of e2m1 (OCP Microscaling Formats 1.0, table 5)."""
    codes = np.array([0x10, 0x32, 0x54, 0x76, 0xF8], np.uint8)
    found = decode(codes, ELEMENT_TYPES["float4_e2m1fn_x2"])
    assert found.tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -6]


def stats_of(value: Any, tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "x"
    torch.save({"w": value}, path)
    report = inspected(tmp_path, path.read_bytes(), stats=True)
    assert report.stats is not None
    return report.stats["w"]


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_range_and_norm_are_those_of_torch(kind: Any, tmp_path: Path) -> None:
    value = torch.randn(300, 500, generator=torch.Generator().manual_seed(1)).to(kind)
    found = stats_of(value, tmp_path)
    wide = value.double()
    assert (found["min"], found["max"]) == (wide.min().item(), wide.max().item())
    assert found["norm"] == pytest.approx(wide.norm().item(), rel=1e-5)
    assert (found["nan"], found["inf"], found["first_nonfinite"]) == (0, 0, None)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_norms_neither_overflow_nor_vanish(scale: float, tmp_path: Path) -> None:
    value = torch.full((1000,), scale)
    assert stats_of(value, tmp_path)["norm"] == pytest.approx(value.double().norm().item(), rel=1e-6)


def test_nan_and_inf_are_counted_and_the_first_is_found(tmp_path: Path) -> None:
    value = torch.ones(200, 3000)
    value[150, 7], value[151, 8], value[199, 2999] = math.inf, math.nan, -math.inf
    found = stats_of(value, tmp_path)
    assert (found["nan"], found["inf"], found["first_nonfinite"]) == (1, 2, [150, 7])
    assert (found["min"], found["max"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    "view",
    [
        lambda base: base.t(),
        lambda base: base[::2, 1::3],
        lambda base: base.permute(1, 0)[3:],
        lambda base: base[:, 4],
        lambda base: base[5:6].expand(7, -1),
        lambda base: base.view(4, 25, 60).permute(2, 0, 1),
    ],
    ids=["transposed", "strided", "sliced", "column", "expanded", "permuted"],
)
def test_views_are_scanned_at_their_own_elements(view: Any, tmp_path: Path) -> None:
    base = torch.arange(6000.0).view(100, 60)
    chosen = view(base)
    spot = tuple(size // 2 for size in chosen.shape)
    inner = chosen[spot]
    found = stats_of(chosen, tmp_path)
    assert (found["min"], found["max"]) == (chosen.min().item(), chosen.max().item())
    inner.fill_(math.nan)
    bad = stats_of(chosen, tmp_path)
    assert bad["nan"] >= 1
    first = tuple(bad["first_nonfinite"])
    assert math.isnan(chosen[first].item())


def test_an_attention_mask_is_no_fault(tmp_path: Path) -> None:
    mask = torch.full((8, 8), -math.inf).triu(1)
    path = tmp_path / "x"
    torch.save({"mask": mask}, path)
    assert inspected(tmp_path, path.read_bytes(), stats=True).verdict == "ok"


def test_plain_minus_infinity_among_weights_is_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    torch.save({"w": torch.tensor([1.0, -math.inf])}, path)
    assert inspected(tmp_path, path.read_bytes(), stats=True).verdict == "numeric"


def test_big_endian_archives_are_read_in_their_order(tmp_path: Path) -> None:
    pickle = program(table(w=tensor("0", (2,), (1,), elements=2)))
    members = {
        "a/data.pkl": pickle,
        "a/byteorder": b"big",
        "a/data/0": struct.pack(">2f", 1.5, -2.0),
        "a/version": b"3",
    }
    report = inspected(tmp_path, zipped(members), stats=True)
    assert report.stats is not None
    assert (report.stats["w"]["min"], report.stats["w"]["max"]) == (-2.0, 1.5)


def test_nan_is_found_with_stats_only(tmp_path: Path) -> None:
    data = archive(program(table(w=tensor("0", (2,), (1,), elements=2))), {"0": floats(1, math.nan)})
    assert inspected(tmp_path, data).verdict == "ok"
    report = inspected(tmp_path, data, stats=True)
    assert report.verdict == "numeric"
    assert report.reasons() == ["tensor w: 1 NaN, first at [1]"]
    assert report.exit_code(strict=False) == 4

"""The sixty shapes and the CASES.md K files that are shared beside the repository, where they are there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from strata_core.audit import Report, inspect_checkpoint
from tests.strata_core.audit.building import SHARED

CASES = SHARED / "cases"
GENERATOR = CASES / "checkpoints" / "gen_cases.py"


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not GENERATOR.is_file():
        pytest.skip(f"{GENERATOR} is not there")
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("shapes")
    subprocess.run([sys.executable, "-W", "ignore", GENERATOR, folder], check=True, capture_output=True)
    return folder


def test_every_shape_has_the_verdict_that_is_due(shapes: Path) -> None:
    expected: dict[str, Any] = json.loads((shapes / "expected.json").read_text())
    wrong = {}
    for case, due in expected.items():
        for stats in (False, True):
            report = inspect_checkpoint(shapes / due["path"], stats=stats)
            wanted = "ok" if due["verdict"] == "numeric" and not stats else due["verdict"]
            if report.verdict != wanted or (wanted != "ok" and not report.reasons()):
                wrong[case, stats] = report.verdict, report.reasons()
    assert len(expected) >= 60
    assert wrong == {}
    assert list((shapes / "markers").iterdir()) == []


def case(name: str) -> Report:
    path = CASES / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return inspect_checkpoint(path)


@pytest.mark.parametrize("name", ["K01/zip64_small.pt", "K02/legacy.pt"])
def test_both_layouts_list_the_same_tensors(name: str) -> None:
    report = case(name)
    assert report.verdict == "ok"
    assert {tensor.name: tensor.shape for tensor in report.tensors} == {"emb.weight": (2, 3), "out.bias": (2,)}
    assert report.totals["parameters"] == 8


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cut.safetensors", "24 bytes of data are announced and 19 are present"),
        ("tail.safetensors", "2 bytes too many"),
        ("huge_header.safetensors", "1,099,511,627,776"),
        ("overlap.safetensors", "tensor v"),
        ("shape_lie.safetensors", "tensor w"),
        ("bad_json.safetensors", "header"),
        ("zero.pt", "empty file"),
        ("text.pt", "begins with <html"),
        ("cut.pt", "cut short"),
        ("flip.pt", "archive/data/0"),
    ],
)
def test_damaged_files_say_what_is_wrong(name: str, reason: str) -> None:
    report = case(f"K04/{name}")
    assert report.exit_code(strict=False) == 5
    assert reason in report.reasons()[0]


@pytest.mark.parametrize("name", ["K04/ok.safetensors", "K04/ok.pt", "K05/clean.pt"])
def test_sound_files_are_ok(name: str) -> None:
    assert case(name).verdict == "ok"


@pytest.mark.parametrize(
    "name",
    ["global.pt", "stack_global.pt", "plain.pkl", "legacy_evil.pt", "second_pickle.pt", "after_stop.pt", "flagged.pt"],
)
def test_payloads_are_named(name: str) -> None:
    report = case(f"K05/{name}")
    assert report.verdict == "unsafe"
    assert "posix.system" in report.reasons()[0]


def test_a_dotted_name_is_named_whole() -> None:
    report = case("K05/dotted.pt")
    assert report.verdict == "unsafe"
    assert "builtins.print.__class__" in report.reasons()[0]


def test_sharing_copies_and_views_are_told() -> None:
    tied, copied, view, strided = (case(f"K07/{name}.pt") for name in ("tied", "copied", "view", "strided"))
    assert tied.totals == {"tensors": 2, "parameters": 12, "elements": 12, "bytes": 48}
    assert tied.sharing == [["emb.weight", "lm_head.weight"]]
    assert copied.totals["parameters"] == 24
    assert "emb.weight and lm_head.weight have equal content and are not shared" in copied.notes
    assert "slice uses 10 of 100,000 stored elements: 99,990 unused ones ride along" in view.notes
    assert "expanded has 25 elements over 1 stored" in strided.notes
    assert case("K07/outside.pt").verdict == "corrupt"


@pytest.mark.parametrize("name", ["ddp", "compiled", "both"])
def test_wrapper_prefixes_are_shown_with_the_plain_names(name: str) -> None:
    report = case(f"K08/{name}.pt")
    assert report.verdict == "ok"
    shown = report.to_json()
    assert [tensor["plain_name"] for tensor in shown["tensors"]] == ["emb.weight", "out.bias"]
    assert shown["wrappers"]


def test_honest_names_are_left_alone_and_clashes_refused() -> None:
    assert case("K08/honest.pt").wrappers.plain_names == {}
    clash = case("K08/clash.pt")
    assert clash.exit_code(strict=False) == 5
    assert "both become emb.weight" in clash.reasons()[0]


@pytest.mark.slow
def test_an_archive_beyond_four_gibibytes_is_listed(tmp_path: Path) -> None:
    if not (CASES / "K01" / "make.py").is_file():
        pytest.skip("the maker of the large archive is not there")
    for name in ("K01", "_common"):
        (tmp_path / name).mkdir()
    (tmp_path / "K01" / "make.py").write_bytes((CASES / "K01" / "make.py").read_bytes())
    (tmp_path / "_common" / "ptwrite.py").write_bytes((CASES / "_common" / "ptwrite.py").read_bytes())
    subprocess.run([sys.executable, tmp_path / "K01" / "make.py", "--big"], check=True)
    report = inspect_checkpoint(tmp_path / "K01" / "zip64_big.pt")
    assert report.verdict == "ok"
    assert report.totals["parameters"] == 1_100_000_002

from __future__ import annotations

import pytest

from strata_core.audit.dtypes import ELEMENT_TYPES
from strata_core.audit.names import WrapperReport, find_wrappers
from strata_core.audit.tensors import Tensor


def look_at(*names: str, container: str = "") -> WrapperReport:
    return find_wrappers([Tensor(name, ELEMENT_TYPES["float32"], (2,), container=container) for name in names])


@pytest.mark.parametrize(
    "names",
    [
        ("module.emb.weight", "module.out.bias"),
        ("_orig_mod.emb.weight", "_orig_mod.out.bias"),
        ("_orig_mod.module.emb.weight", "module._orig_mod.out.bias"),
        ("module.module.emb.weight", "module.module.out.bias"),
        ("emb._orig_mod.weight", "out._orig_mod.bias"),
    ],
)
def test_wrappers_are_found_with_the_plain_names(names: tuple[str, ...]) -> None:
    report = look_at(*names)
    assert list(report.plain_names.values()) == ["emb.weight", "out.bias"]
    assert report.wrappers
    assert not report.clashes


def test_a_submodule_called_module_is_left_alone() -> None:
    assert look_at("module.weight", "emb.weight") == WrapperReport()


def test_names_that_would_become_one_are_a_clash() -> None:
    assert look_at("module.emb.weight", "emb.weight").clashes == [
        "module.emb.weight and emb.weight both become emb.weight once wrapper prefixes are taken off"
    ]


def test_names_are_looked_at_within_their_dict() -> None:
    report = look_at("model.module.a", "model.module.b", container="model")
    assert report.plain_names == {"model.module.a": "model.a", "model.module.b": "model.b"}

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from tests.strata_core.audit import fuzz


@pytest.mark.parametrize("files", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_no_damaged_file_breaks_a_rule(files: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = fuzz.run(files, seed=1)
    assert outcome.broken == []
    assert sum(outcome.counts.values()) == files

"""Samples of graphs in the cache."""

from dataclasses import replace

import pytest

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.preparation import GraphSettings
from strata_core.corpus.graphs.samples import graph_sample_corpus
from strata_core.errors import UsageError
from tests.strata_core.corpus.helpers import folder_bytes

SMALL = GraphSettings(sample_seed=3, sample_examples=30, sample_eval_examples=15, sample_longest_hops=2)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_sample_is_made_once_and_has_what_was_asked_for() -> None:
    folder = graph_sample_corpus("synthetic-reasoning", SMALL)
    made = (folder / "manifest.json").stat().st_mtime_ns
    assert graph_sample_corpus("synthetic-reasoning", SMALL) == folder
    assert (folder / "manifest.json").stat().st_mtime_ns == made
    info = open_graph_corpus(folder).info
    assert info.splits["train"]["examples"] == 30 and info.splits["test-size"]["examples"] == 15
    assert info.generator["seed"] == 3 and info.generator["longest_hops"] == 2


@pytest.mark.parametrize(
    "change", [{"sample_seed": 4}, {"sample_examples": 33}, {"sample_longest_hops": 3}, {"sample_doubtful_share": 0.2}]
)
def test_other_settings_are_another_corpus(change) -> None:
    first, second = (graph_sample_corpus("synthetic-reasoning", one) for one in (SMALL, replace(SMALL, **change)))
    assert open_graph_corpus(first).digest != open_graph_corpus(second).digest


def test_a_damaged_sample_is_made_again() -> None:
    folder = graph_sample_corpus("synthetic-reasoning", SMALL)
    whole = folder_bytes(folder)
    (folder / "graphs" / "test" / "edges.bin").write_bytes(b"")
    assert folder_bytes(graph_sample_corpus("synthetic-reasoning", SMALL)) == whole


def test_an_unknown_sample_or_setting_leaves_nothing(cache) -> None:
    with pytest.raises(UsageError, match="there is no sample"):
        graph_sample_corpus("synthetic-treebank", SMALL)
    with pytest.raises(UsageError, match="longest_hops"):
        graph_sample_corpus("synthetic-reasoning", replace(SMALL, sample_longest_hops=9))
    assert not cache.exists()

"""Samples in the cache."""

import subprocess
import sys
from pathlib import Path

import pytest

from strata_core.corpus.preparing.samples import cache_folder, sample_corpus
from strata_core.corpus.reading import open_corpus
from strata_core.corpus.sources.samples import GRAPH_SAMPLES, SAMPLES, check_sample
from strata_core.errors import UsageError
from tests.strata_core.corpus.helpers import folder_bytes


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRATA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_sample_is_made_once_and_found_again(cache: Path) -> None:
    folder = sample_corpus("python-topics", vocab_size=300)
    made = (folder / "manifest.json").stat().st_mtime_ns
    assert sample_corpus("python-topics", vocab_size=300) == folder
    assert (folder / "manifest.json").stat().st_mtime_ns == made
    assert open_corpus(folder).split("val").n_documents >= 2


def test_other_settings_are_another_corpus(cache: Path) -> None:
    assert sample_corpus("python-topics", vocab_size=300) != sample_corpus("python-topics", vocab_size=301)


def test_a_damaged_sample_is_made_again(cache: Path) -> None:
    folder = sample_corpus("python-topics", vocab_size=300)
    whole = folder_bytes(folder)
    (folder / "train-00000.bin").write_bytes(b"")
    assert folder_bytes(sample_corpus("python-topics", vocab_size=300)) == whole


def test_processes_that_ask_at_once_share_one(cache: Path) -> None:
    program = (
        "import sys; sys.path[:] = eval(sys.argv[1]); from strata_core.corpus.preparing.samples import sample_corpus;"
        "print(sample_corpus('python-topics', vocab_size=300))"
    )
    command = [sys.executable, "-c", program, repr(sys.path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(answers) == 1
    assert open_corpus(answers.pop().strip()).vocab_size == 300


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("STRATA_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "strata"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/strata")
    monkeypatch.setenv("STRATA_CACHE", "/s")
    assert cache_folder() == Path("/s")


def test_an_unknown_sample_is_a_usage_error(cache: Path) -> None:
    with pytest.raises(UsageError):
        sample_corpus("nothing")
    assert not cache.exists()


def test_an_unknown_sample_is_answered_with_all_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        check_sample("nope")
    assert refused.value.hint is not None
    assert set(refused.value.hint.removeprefix("samples: ").split(", ")) == {*SAMPLES, *GRAPH_SAMPLES}

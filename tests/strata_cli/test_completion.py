import os

import pytest

from strata_cli import completion


@pytest.fixture
def complete(strata):
    """Candidates for a command line whose last word is being typed, as the shell asks for them."""

    def candidates(line: str, shell: str = "bash", **environment: str) -> list[str]:
        words = line.split(" ")
        asked = {
            "_STRATA_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        result = strata(environment={**asked, **environment})
        assert result.stderr == b""
        return result.stdout.decode().splitlines()

    return candidates


@pytest.fixture
def run_directory(tmp_path):
    run = tmp_path / "runs" / "small-1"
    for step in (9, 10, 10000):
        (run / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
    (run / "checkpoints" / ".step-00000011.partial").mkdir()
    (run / "recipe.toml").write_text("")
    (tmp_path / "runs" / "other").mkdir()
    return run


def test_commands_and_options_are_completed(complete):
    assert {"train-lm", "resume", "recipes", "prepare-corpus", "env"} <= set(complete("strata "))
    assert sorted(complete("strata train")) == ["train-graph", "train-lm"]
    assert {"--recipe", "--set", "--out", "--device"} <= set(complete("strata train-lm --"))


def test_recipe_names_are_completed_by_kind(complete):
    assert complete("strata train-lm --recipe lm/sm") == ["lm/small"]
    assert "corpus/python-topics" not in complete("strata train-lm --recipe ")
    assert complete("strata prepare-corpus --recipe corpus/p") == ["corpus/python-topics"]
    assert not set(complete("strata train-graph --recipe ")) & set(complete("strata train-lm --recipe "))
    assert complete("strata train-graph --recipe graph/q") == ["graph/quickstart"]
    assert "corpus/python-topics" in complete("strata recipes show ")


def test_set_keys_are_completed(complete):
    assert complete("strata train-lm --set optimizer.w") == [
        "optimizer.warmup_steps=",
        "optimizer.warmup_ratio=",
        "optimizer.weight_decay=",
    ]
    assert complete("strata train-graph --set objective.pair") == [
        "objective.pair_margin=",
        "objective.pair_margin_size=",
    ]
    assert "run.max_steps=" in complete("strata resume r --set run.")
    assert "run.seed=" not in complete("strata resume r --set run.")


def test_run_directories_and_their_steps_are_completed_newest_first(complete, run_directory):
    assert complete("strata resume ") == ["runs/small-1"]
    assert complete("strata resume runs/sm") == ["runs/small-1"]
    assert complete("strata resume runs/small-1 --from ") == ["latest", "best", "10000", "10", "9"]


def test_evaluate_and_predict_complete_runs_their_steps_and_splits(complete, run_directory):
    assert complete("strata evaluate ") == complete("strata predict ") == ["runs/small-1"]
    assert complete("strata evaluate runs/small-1 --from ") == ["latest", "best", "10000", "10", "9"]
    assert complete("strata evaluate runs/small-1 --split te") == ["test"]
    (run_directory / "corpus.json").write_text('{"splits": {"train": {}, "test-02": {}, "test-03": {}}}')
    assert complete("strata evaluate runs/small-1 --corpus runs/small-1 --split te") == ["test-02", "test-03"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_get_candidates_with_their_help(complete, shell):
    shown = "\n".join(complete("strata ", shell))
    assert "train-lm" in shown
    assert "Train a language model as a recipe says." in shown


def test_completion_works_without_torch_and_pydantic_and_writes_nothing(complete, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    for name in ("torch", "pydantic", "numpy", "tokenizers"):
        (blocked / f"{name}.py").write_text("raise ImportError('blocked')")
    assert complete("strata train-lm --recipe quick", PYTHONPATH=str(blocked)) == ["quickstart"]
    assert os.listdir(tmp_path) == ["blocked"]


def test_offered_samples_are_those_that_there_are():
    from strata_core.corpus.sources.samples import GRAPH_SAMPLES, SAMPLES

    assert completion.samples("") == sorted([*SAMPLES, *GRAPH_SAMPLES])

"""The checkpoint behind a path: which one is taken of a run, and what is refused."""

import shutil

import pytest

from strata_core.errors import DataError, UsageError
from strata_core.launch.starting import train
from strata_core.observer import Observer
from strata_core.training.run.folder import RunFolder
from strata_core.training.trained import config_differences, find_trained


class Notices(Observer):
    def __init__(self):
        self.lines = []

    def notice(self, text):
        self.lines.append(text)

    def warning(self, text):
        self.lines.append(text)


@pytest.fixture
def run(tiny_recipe, tmp_path):
    """Steps 4, 8 and 12, of which 4 is called the best."""
    path = tmp_path / "run"
    train(tiny_recipe("checkpoint.every=4", "model.n_layers=1"), path, device="cpu")
    (path / "checkpoints" / "best").symlink_to("step-00000004")
    return path


def damage(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def test_of_a_run_the_best_checkpoint_is_taken_and_the_latest_without_one(run):
    said = Notices()
    assert find_trained(run, observer=said).step == 4
    (run / "checkpoints" / "best").unlink()
    assert find_trained(run, observer=said).step == 12
    assert said.lines == [f"taking the best checkpoint of {run}", f"taking the latest checkpoint of {run}"]


def test_a_checkpoint_can_be_asked_for(run):
    assert find_trained(run, choose="latest").step == 12
    assert find_trained(run, choose="8").step == 8
    with pytest.raises(UsageError) as caught:
        find_trained(run, choose="9")
    assert caught.value.hint == "it has steps 4, 8, 12"


def test_a_damaged_latest_checkpoint_is_passed_over_and_named(run):
    damage(run / "checkpoints" / "step-00000012" / "model.safetensors")
    said = Notices()
    assert find_trained(run, choose="latest", observer=said).step == 8
    assert "passed over step-00000012" in said.lines[0]


def test_weights_that_are_not_those_of_the_manifest_are_not_used(run):
    damage(run / "checkpoints" / "step-00000004" / "model.safetensors")
    with pytest.raises(DataError, match=r"step-00000004 is not whole: model.safetensors has SHA-256"):
        find_trained(run)


def test_a_checkpoint_in_its_run_knows_the_run_and_a_copy_elsewhere_does_not(run, tmp_path):
    folder = run / "checkpoints" / "step-00000008"
    inside = find_trained(folder)
    assert (inside.step, inside.run.path) == (8, run)
    shutil.copytree(folder, tmp_path / "copy")
    copy = find_trained(tmp_path / "copy")
    assert (copy.step, copy.run, copy.recipe()) == (8, None, None)


def test_a_checkpoint_below_another_run_is_not_taken_for_one_of_it(run, tiny_recipe, tmp_path):
    train(tiny_recipe("model.n_layers=1", "run.seed=8"), tmp_path / "other", device="cpu")
    shutil.copytree(run / "checkpoints" / "step-00000008", tmp_path / "other" / "checkpoints" / "step-00000008")
    assert find_trained(tmp_path / "other" / "checkpoints" / "step-00000008").run is None


def test_what_is_neither_run_nor_checkpoint_is_refused(run, byte_corpus, tmp_path):
    with pytest.raises(UsageError, match="is a corpus"):
        find_trained(byte_corpus)
    with pytest.raises(UsageError, match="neither a run nor a checkpoint"):
        find_trained(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        find_trained(tmp_path / "absent")
    with pytest.raises(UsageError, match="is a checkpoint itself"):
        find_trained(run / "checkpoints" / "step-00000008", choose="latest")


def test_the_corpus_is_found_where_run_and_corpus_were_moved_together(run, byte_corpus, tmp_path):
    assert find_trained(run).recipe().corpus.path.samefile(byte_corpus)


def test_differences_are_told_with_numbers_and_names():
    ours = {"kind": "x", "model": {"vocab_size": 300}, "labels": {"upos": ["A", "B", "C"], "role": ["R", "S"]}}
    theirs = {"kind": "x", "model": {"vocab_size": 257}, "labels": {"upos": ["A", "D"], "role": ["S", "R"]}}
    assert config_differences(ours, theirs) == [
        "model.vocab_size: 300 here, 257 in the checkpoint",
        "labels.upos: 3 here, 2 in the checkpoint; only the corpus has B, C; only the checkpoint has D",
        "labels.role: 2 here, 2 in the checkpoint, in another order",
    ]
    assert config_differences(ours, ours) == []


def test_differences_are_told_without_the_notation_of_a_language():
    ours = {"kind": "x", "model": {"tied": True, "name": "a"}}
    theirs = {"kind": "x", "model": {"tied": False, "heads": None, "width": 3}}
    assert config_differences(ours, theirs) == [
        "model.tied: yes here, no in the checkpoint",
        "model.width: nothing here, 3 in the checkpoint",
        "model.name: a here, nothing in the checkpoint",
    ]


def test_what_is_no_run_is_called_what_it_is_with_what_is_wanted(byte_corpus, run, tmp_path):
    def refusal(path):
        with pytest.raises(UsageError) as caught:
            RunFolder.open(path)
        return caught.value

    wanted = "name a run directory, one that strata train-lm or train-graph made"
    corpus = refusal(byte_corpus)
    assert (corpus.message, corpus.hint) == (f"{byte_corpus} is a corpus, not a run", wanted)
    step = run / "checkpoints" / "step-00000008"
    checkpoint = refusal(step)
    assert (checkpoint.message, checkpoint.hint) == (f"{step} is a checkpoint, not a run", wanted)
    nothing = refusal(tmp_path)
    assert (nothing.message, nothing.hint) == (
        f"{tmp_path} is not a run: it has no recipe.toml and manifest.json",
        wanted,
    )

"""Ranks that fail, die or fall silent, and disks that refuse: what the user sees, and what is left."""

import json
import shutil
import signal

import numpy as np
import pytest

from strata_core.corpus.reading import open_corpus
from strata_core.training.checkpoint import load_checkpoint
from strata_core.training.order import SampleOrder
from tests.drills.attempts import launch_attempt, said_beside, wait_for_line
from tests.drills.forking import differences, records_without_timing
from tests.e2e.launching import outcome_of, strata, write_recipe

SEQ_LEN, SEED, BATCH_SIZE = 32, 7, 4


def damage_a_token_of_rank_1(corpus_path):
    """Puts an id outside the vocabulary into a window that only rank 1 of 2 reads; its shard's name and its offset."""
    corpus = open_corpus(corpus_path)
    n_windows = (corpus.split("train").n_tokens - 1) // SEQ_LEN
    window = int(SampleOrder(n_windows, SEED).samples(2 * BATCH_SIZE, BATCH_SIZE)[BATCH_SIZE // 2])
    offset = window * SEQ_LEN + SEQ_LEN // 2
    shards = json.loads((corpus_path / "corpus.json").read_text())["splits"]["train"]["shards"]
    for shard in shards:
        if offset < shard["tokens"]:
            ids = np.memmap(corpus_path / f"{shard['name']}.bin", dtype="<u2", mode="r+")
            ids[offset] = 65535
            ids.flush()
            return f"{shard['name']}.bin", offset
        offset -= shard["tokens"]
    raise AssertionError("no such window")


def test_what_one_rank_alone_read_wrong_is_what_the_user_sees(byte_corpus, tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(byte_corpus, corpus)
    shard, offset = damage_a_token_of_rank_1(corpus)
    recipe = write_recipe(tmp_path, corpus)
    result = strata("train-lm", "--recipe", recipe, "--out", tmp_path / "run", "--nproc", "2", "--device=cpu")
    assert result.returncode == 5, result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert errors[0].startswith("error: rank 1: ")
    assert f"{shard}: the token at offset {offset} is 65535, outside the vocabulary of 257" in errors[0]
    assert "Traceback" not in result.stderr
    assert not list((tmp_path / "run" / "checkpoints").glob(".step*"))


@pytest.fixture
def launch(byte_corpus, tmp_path):
    """A function that starts a run of two ranks under the command, some steps in; it is ended in any case."""
    attempts = []

    def start(*options, **settings):
        recipe = write_recipe(tmp_path, byte_corpus, checkpoint__every=10, **settings)
        attempts.append(launch_attempt(recipe, tmp_path / "run", 2, None, *options))
        assert wait_for_line(tmp_path / "run" / "metrics.jsonl", 25, attempts[0])
        return tmp_path / "run", attempts[0]

    yield start
    for attempt in attempts:
        attempt.end()


def test_a_rank_that_dies_is_started_again_from_the_newest_checkpoint(launch):
    run, attempt = launch("--max-restarts", "1", run__max_steps=100, distributed__exact_reduction=True)
    assert attempt.send("rank 1", signal.SIGKILL)
    assert attempt.wait() == [0], said_beside(run).read_text()
    assert attempt.left_over() == []
    assert [event["event"] for event in records_without_timing(run / "events.jsonl")].count("resumed") == 1
    undisturbed = run.with_name("undisturbed")
    assert strata("train-lm", "--recipe", run.with_name("recipe.toml"), "--out", undisturbed).returncode == 0
    different = [name for name in differences(run, undisturbed, 100) if not name.endswith("manifest.json")]
    assert different == []


@pytest.fixture(scope="module")
def storage(byte_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("storage")
    write_recipe(folder, byte_corpus, checkpoint__every=5, checkpoint__keep_last=9, distributed__exact_reduction=True)
    return outcome_of("failing_storage", folder)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("full disk", ["checkpoints/step-00000010/model.safetensors", "51,712 bytes", "larger than the limit"]),
        ("full disk, two ranks", ["rank 0: cannot write"]),
        ("read-only run", ["cannot write", "permission denied"]),
    ],
)
def test_a_disk_that_refuses_leaves_the_last_checkpoint_whole_and_the_run_goes_on_later(storage, case, said):
    found = storage[case]
    # The other rank has lost this one, or had nothing left to do when the last save failed.
    assert found["codes"][0] == 5 and set(found["codes"][1:]) <= {0, 1}
    assert all(text in found["said"] for text in said), found["said"]
    assert (found["untouched"], found["left"]) == (True, ["step-00000005"])
    assert (found["resumed"], found["different"]) == (0, [])


@pytest.mark.slow
def test_a_rank_that_is_killed_is_named_and_nothing_is_left(launch):
    run, attempt = launch(run__max_steps=1_000_000)
    attempt.send("rank 1", signal.SIGKILL)
    assert attempt.wait() == [1]
    assert attempt.left_over() == []
    said = said_beside(run).read_text()
    assert "error: rank 1: killed by SIGKILL" in said
    assert "strata resume" in said
    assert "frame #" not in said and "Traceback" not in said
    assert not list((run / "checkpoints").glob(".step*"))
    load_checkpoint(run / "checkpoints" / "latest")


@pytest.mark.slow
def test_a_rank_that_stops_answering_is_named(launch):
    run, attempt = launch(run__max_steps=1_000_000, distributed__timeout_seconds=5)
    attempt.send("rank 1", signal.SIGSTOP)
    assert attempt.wait() == [1]
    assert attempt.left_over() == []
    said = said_beside(run).read_text()
    assert "error: rank 0: lost the other ranks: rank 1 is" in said
    assert "frame #" not in said and "Traceback" not in said

"""What asks a run to stop, and what the run does: the last step is saved, 75 means resume me, nothing is left."""

import signal
import time

import pytest

from strata_core.training.checkpoint import load_checkpoint
from tests.drills.attempts import launch_attempt, said_beside, wait_for_line
from tests.drills.forking import records_without_timing
from tests.e2e.launching import outcome_of, strata, write_recipe

CASES = 16


@pytest.fixture(scope="module")
def stops(byte_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stops")
    settings = {"checkpoint__every": 3, "checkpoint__keep_last": 9, "evaluation__every": 5}
    write_recipe(folder, byte_corpus, **settings, distributed__exact_reduction=True)
    return outcome_of("stop_anywhere", folder)


def test_one_signal_to_any_rank_at_any_moment_saves_the_last_step_and_the_resumed_run_is_the_same(stops):
    assert len(stops["once"]) == CASES
    for case, found in stops["once"].items():
        assert set(found["codes"]) == {75}, case
        assert found["newest"] == found["last"] < 12, case
        assert found["passed_over"] == [], case
        assert (found["resumed"], found["different"]) == (0, []), case


def test_a_second_signal_leaves_at_once_and_earlier_checkpoints_are_intact(stops):
    for case, found in stops["twice"].items():
        assert found["codes"] == [130], case
        assert (found["newest"], found["passed_over"]) == (3, []), case
        assert (found["resumed"], found["different"]) == (0, []), case


@pytest.fixture
def launched(byte_corpus, tmp_path):
    """A run of two ranks under the command that lasts until it is stopped; ended in any case."""
    recipe = write_recipe(tmp_path, byte_corpus, run__max_steps=1_000_000, checkpoint__every=20, batch__num_workers=2)
    attempt = launch_attempt(recipe, tmp_path / "run", 2)
    yield tmp_path / "run", attempt
    attempt.end()


@pytest.fixture
def under_way(launched):
    """The same, some steps and a checkpoint later."""
    run, attempt = launched
    assert wait_for_line(run / "metrics.jsonl", 30, attempt), said_beside(run).read_text()
    return run, attempt


def assert_stopped_for(run, reason):
    *_, preempted, _ = records_without_timing(run / "events.jsonl")
    last = records_without_timing(run / "metrics.jsonl")[-1]["step"]
    assert preempted == {"event": "preempted", "step": last, "reason": reason}
    assert load_checkpoint(run / "checkpoints" / "latest").trainer["progress"]["step"] == last


def test_a_signal_to_every_process_of_a_launch_is_one_request(under_way):
    run, attempt = under_way
    attempt.send("group", signal.SIGTERM)
    assert attempt.wait() == [75]
    assert attempt.left_over() == []
    assert_stopped_for(run, "SIGTERM")
    assert f"strata resume {run}" in said_beside(run).read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "number"),
    [
        ("launcher", signal.SIGTERM),
        ("launcher", signal.SIGUSR1),
        ("launcher", signal.SIGINT),
        ("rank 1", signal.SIGTERM),
    ],
)
def test_a_signal_to_the_launcher_or_a_rank_stops_the_run(under_way, target, number):
    run, attempt = under_way
    attempt.send(target, number)
    assert attempt.wait() == [75]
    assert attempt.left_over() == []
    assert_stopped_for(run, number.name)


@pytest.mark.slow
def test_a_signal_before_the_ranks_have_started_is_not_lost(launched):
    run, attempt = launched
    while "rank 1" not in attempt.processes and attempt.launcher.poll() is None:
        attempt.look_again()
        time.sleep(0.01)
    attempt.send("group", signal.SIGTERM)
    assert attempt.wait() == [75]
    assert_stopped_for(run, "SIGTERM")


@pytest.mark.slow
def test_a_second_signal_to_the_launcher_ends_the_ranks_at_once(under_way):
    run, attempt = under_way
    attempt.send("rank 1", signal.SIGSTOP)
    attempt.send("launcher", signal.SIGTERM)
    time.sleep(1.5)
    attempt.send("launcher", signal.SIGTERM)
    assert attempt.wait() == [130]
    assert attempt.left_over() == []
    load_checkpoint(run / "checkpoints" / "latest")


@pytest.mark.slow
def test_no_rank_outlives_a_launcher_that_was_killed_and_no_step_is_lost(under_way):
    run, attempt = under_way
    attempt.send("launcher", signal.SIGKILL)
    assert attempt.wait() == [-signal.SIGKILL]
    assert attempt.left_over() == []
    assert_stopped_for(run, "the launcher is gone")


@pytest.mark.slow
def test_a_run_in_use_is_refused_to_a_second_process(under_way):
    run, attempt = under_way
    refused = strata("resume", run, "--device=cpu")
    assert (refused.returncode, "in use" in refused.stderr) == (6, True)
    attempt.send("launcher", signal.SIGTERM)
    assert attempt.wait() == [75]

"""Records line by line: what a line cut short does to those before and after it."""

import json
import resource
import threading

import pytest

from strata_core.errors import StorageError
from strata_core.replay.sessions import sessions_between
from strata_core.training.run.folder import RunFolder
from strata_core.training.run.records import RecordLog

TORN = '{"event": "sav'
"""What a full disk or a kill leaves of a record."""


@pytest.fixture
def log(tmp_path):
    return RecordLog(tmp_path / "events.jsonl")


def steps(log):
    return [record["step"] for record in log.read()]


def test_what_is_appended_after_a_torn_line_is_read(log):
    log.append({"event": "saved", "step": 1})
    with open(log.path, "a") as file:
        file.write(TORN)
    assert steps(log) == [1]
    log.append({"event": "saved", "step": 2})
    log.append({"event": "saved", "step": 3})
    assert steps(log) == [1, 2, 3]
    assert [json.loads(line)["step"] for line in log.path.read_text().splitlines()] == [1, 2, 3]


def test_a_file_that_is_one_torn_line_begins_anew(log):
    log.path.write_text(TORN)
    log.append({"event": "saved", "step": 1})
    assert log.path.read_text() == '{"event": "saved", "step": 1}\n'


def test_a_whole_record_whose_end_of_line_is_missing_is_as_torn_as_half_a_one(log):
    log.append({"step": 1})
    log.path.write_text(log.path.read_text() + '{"step": 2}')
    assert steps(log) == [1]
    log.append({"step": 3})
    assert steps(log) == [1, 3]


def test_no_record_is_lost_where_several_threads_append(log):
    long = "x" * 20_000

    def append(thread):
        for number in range(20):
            log.append({"step": 100 * thread + number, "text": long})

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(steps(log)) == sorted(100 * thread + number for thread in range(4) for number in range(20))


def test_a_full_disk_is_told_and_what_it_cut_short_is_dropped_by_the_next_record(log):
    log.append({"step": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.path.stat().st_size + 5, hard))
    try:
        with pytest.raises(StorageError, match="limit on file sizes"):
            log.append({"step": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.path.read_text() == '{"step": 1}\n{"ste'
    log.append({"step": 3})
    assert steps(log) == [1, 3]


def test_the_sessions_of_a_run_are_found_behind_a_torn_event(tiny_recipe, tmp_path):
    from strata_core.launch.starting import resume_run, train

    train(tiny_recipe("model.n_layers=1", "run.max_steps=3"), tmp_path / "run", device="cpu")
    with open(tmp_path / "run" / "events.jsonl", "a") as file:
        file.write(TORN)
    resume_run(tmp_path / "run", overrides=["run.max_steps=5"], device="cpu")
    sessions = sessions_between(RunFolder.open(tmp_path / "run"), 0, 5)
    assert [(session.first_step, session.recipe.run.max_steps) for session in sessions] == [(0, 3), (3, 5)]

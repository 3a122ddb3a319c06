"""Worker processes: order, failure, and that they end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from strata_core.corpus.sources.jsonl import JsonLines
from strata_core.corpus.text.encoding import EncodingSettings, Job
from strata_core.corpus.text.workers import encode_in_order, encoding_workers
from strata_core.errors import StrataError
from tests.strata_core.corpus.helpers import byte_tokenizer_json

SETTINGS = EncodingSettings(json.dumps(byte_tokenizer_json()).encode(), "tokenizers", "text", 0.0)


def jobs(count: int) -> list[Job]:
    """Documents of very unequal length, so that workers finish out of turn."""
    lines = [b'{"text": "%d %s"}' % (number, b"x" * (50_000 if number % 3 == 0 else 5)) for number in range(count)]
    return [Job(records=(JsonLines("in.jsonl", number, [line]),)) for number, line in enumerate(lines)]


def first_numbers(count: int, workers: int) -> list[str]:
    found = []
    with encoding_workers(SETTINGS, workers) as encoders:
        for _, encoded in encode_in_order(encoders, jobs(count)):
            found.append(bytes(encoded.splits["train"].ids[:12].astype(np.uint8)).split(b" ")[0].decode())
    return found


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_jobs(workers: int) -> None:
    assert first_numbers(20, workers) == [str(number) for number in range(20)]


def test_a_bounded_number_of_jobs_is_drawn_ahead() -> None:
    drawn = 0

    def counted():
        nonlocal drawn
        for job in jobs(30):
            drawn += 1
            yield job

    with encoding_workers(SETTINGS, 2) as encoders:
        for done, _ in enumerate(encode_in_order(encoders, counted())):
            assert drawn - done <= 2 + 2 + 1


def test_a_worker_that_was_killed_is_reported_with_the_remedy() -> None:
    children = psutil.Process().children()
    with (
        pytest.raises(StrataError, match="signal 9") as raised,
        encoding_workers(SETTINGS, 2) as encoders,
    ):
        for child in psutil.Process().children():
            if child not in children:
                child.send_signal(signal.SIGKILL)
        list(encode_in_order(encoders, jobs(5)))
    assert "--workers" in (raised.value.hint or "")


def test_no_worker_is_left_when_the_block_is_left() -> None:
    before = set(psutil.Process().children())
    with encoding_workers(SETTINGS, 2) as encoders:
        next(iter(encode_in_order(encoders, jobs(5))))
        assert len(set(psutil.Process().children()) - before) == 2
    assert set(psutil.Process().children()) == before


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from strata_core.corpus.text.workers import encoding_workers;"
        "from tests.strata_core.corpus.text.test_workers import SETTINGS\n"
        "with encoding_workers(SETTINGS, 2):\n print('ready', flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    workers = psutil.Process(parent.pid).children()
    assert len(workers) == 2
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 20
    while any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.05)

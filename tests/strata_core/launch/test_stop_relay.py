import os
import signal
import subprocess
import time

import pytest

from strata_core.launch.stop_relay import StopRelay
from strata_core.launch.worker import STOP_NAME
from strata_core.training.stop import SIGNALS, StopRequests


@pytest.fixture
def rank():
    """Something for a launcher to look after."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def left_in(exchange):
    limit = time.monotonic() + 10
    while not (exchange / STOP_NAME).exists() and time.monotonic() < limit:
        time.sleep(0.01)
    return (exchange / STOP_NAME).read_text()


def test_a_launcher_leaves_the_first_signal_for_its_ranks_and_gives_its_own_handlers_back(tmp_path, rank, own_signals):
    stop = StopRequests()
    stop.listen()
    handler = signal.getsignal(signal.SIGUSR1)
    relay = StopRelay(tmp_path, stop)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert left_in(tmp_path) == '"SIGUSR1"'
    relay.end()
    assert not stop.requested
    assert signal.getsignal(signal.SIGUSR1) == handler
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & set(SIGNALS)


def test_what_a_launcher_was_asked_for_before_it_had_ranks_is_passed_on(tmp_path):
    stop = StopRequests()
    stop.request("SIGTERM")
    relay = StopRelay(tmp_path, stop)
    relay.end()
    assert left_in(tmp_path) == '"SIGTERM"'


def test_processes_started_by_a_launcher_hold_the_signals_back_until_they_listen(tmp_path):
    relay = StopRelay(tmp_path, StopRequests())
    with subprocess.Popen(["sleep", "60"]) as process:
        for number in SIGNALS:
            process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.kill()
    relay.end()

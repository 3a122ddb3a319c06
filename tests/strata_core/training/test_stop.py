import os
import signal
import threading

import pytest

from strata_core.training.stop import CALLER, REASONS, SIGNALS, StopRequests


def test_signals_that_come_together_are_one_request(own_signals):
    stop = StopRequests()
    stop.listen()
    assert not stop.requested
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1):
        os.kill(os.getpid(), number)
    assert stop.reason == "SIGTERM"
    assert stop.flags() == [float(reason == "SIGTERM") for reason in REASONS]


def test_a_signal_that_was_held_back_is_heard_on_listening(own_signals):
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    # To this thread: another one, which does not hold it back, could take a signal that is sent to the process.
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    stop = StopRequests()
    stop.listen()
    assert stop.reason == "SIGINT"


def test_a_signal_after_the_end_was_decided_changes_nothing(own_signals):
    stop = StopRequests()
    stop.listen()
    stop.ignore()
    os.kill(os.getpid(), signal.SIGTERM)
    assert not stop.requested


@pytest.mark.parametrize(("reason", "flag"), [("SIGUSR1", "SIGUSR1"), ("the disk is nearly full", CALLER)])
def test_a_caller_may_give_a_reason_or_pass_a_signal_on(reason, flag):
    stop = StopRequests()
    stop.request(reason)
    assert stop.reason == reason
    assert stop.flags()[REASONS.index(flag)] == 1.0

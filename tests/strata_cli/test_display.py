import io
import json

import pytest

from strata_cli.commands.training_result import finish
from strata_cli.display.figures import bytes_text, seconds_text, short_count_text
from strata_cli.display.lines import evaluation_line, stage_line, step_figures
from strata_cli.display.output import write_json
from strata_cli.display.plain import PlainObserver, QuietObserver
from strata_cli.display.remaining import RemainingTime

RECORD = {
    "step": 10,
    "loss": 5.43215,
    "lr": 6e-4,
    "grad_norm": 1.234,
    "tokens_seen": 5120,
    "samples_seen": 160,
    "timing": {"tokens_per_second": 12345.6, "step_seconds": 0.1, "memory_bytes": 3 << 29},
}
RESULT = {
    "run_dir": "runs/my run",
    "steps": 300,
    "first_loss": 8.3,
    "final_loss": 4.125,
    "best": {"metric": "bits_per_byte", "value": 1.9876, "step": 200},
    "tokens_seen": 614400,
    "stopped_because": "finished",
    "checkpoint": "runs/my run/checkpoints/step-00000300",
    "seconds": 61.2,
    "tokens_per_second": 10040.0,
    "peak_memory_bytes": 1 << 30,
}


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes_are_in_binary_units(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.9, "59.9 s"), (185, "3 min 05 s"), (7620, "2 h 07 min"), (97200, "1 d 03 h")],
)
def test_durations_are_in_the_two_largest_units(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(7, "7"), (950, "950"), (12345, "12.3k"), (999_900, "1M"), (1.25e9, "1.25B"), (3e12, "3T")]
)
def test_counts_are_shortened_to_three_digits(count, text):
    assert short_count_text(count) == text


def test_a_step_shows_its_figures_and_leaves_out_what_is_absent():
    assert step_figures(RECORD) == ["loss 5.4322", "lr 6.00e-04", "norm 1.23", "12.3k tokens/s", "1.5 GiB"]
    assert step_figures({"step": 1, "loss": None, "lr": 1e-3}) == ["loss not finite", "lr 1.00e-03"]


def test_an_evaluation_shows_its_metrics_and_whether_it_is_the_best():
    record = {"step": 50, "loss": 4.0, "bits_per_byte": 1.5, "best": True, "timing": {"seconds": 1.0}}
    assert evaluation_line(record) == "evaluation at step 50: loss 4.0000, bits per byte 1.5000 (best so far)"


def test_a_stage_shows_share_and_time_left_by_what_is_done():
    assert stage_line("hashing", 1 << 30, 4 << 30, "bytes", 10.0) == (
        "hashing: 1.0 GiB of 4.0 GiB, 25 %, about 30.0 s left"
    )
    assert stage_line("reading", 1234, None, "documents", 3.0) == "reading: 1,234 documents"
    assert stage_line("reading", 0, 10, "documents", 3.0) == "reading: 0 documents of 10 documents, 0 %"


def test_time_left_counts_the_steps_of_this_session_only(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    remaining = RemainingTime()
    remaining.start({"first_step": 50, "max_steps": 100})
    now[0] = 110.0
    assert remaining.after({"step": 60}) == pytest.approx(40.0)
    assert remaining.after({"step": 100}) is None
    assert remaining.step_text({"step": 60}) == "step 60/100"


def test_without_a_terminal_progress_is_whole_lines_on_standard_error(capsys):
    observer = PlainObserver()
    observer.training_started({"run_dir": "runs/a", "first_step": 0, "max_steps": 10, "parameters": 1234567})
    observer.stage_started("hashing", 100, "bytes")
    observer.stage_advanced(100)
    observer.stage_finished()
    observer.step_logged(RECORD)
    observer.evaluated({"step": 10, "loss": 4.0, "best": False})
    observer.checkpoint_saved(10, "runs/a/checkpoints/step-00000010")
    observer.warning("look out")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "\r" not in shown.err
    assert "\x1b" not in shown.err
    assert shown.err.splitlines()[0] == "run dir runs/a | parameters 1,234,567"
    assert shown.err.splitlines()[2].startswith("step 10/10  loss 5.4322  lr 6.00e-04")
    assert shown.err.splitlines()[-1] == "warning: look out"


def test_stage_lines_come_at_intervals(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    observer = PlainObserver()
    observer.stage_started("reading", 100, "documents")
    for done in range(1, 101):
        now[0] += 0.5
        observer.stage_advanced(done)
    assert len(capsys.readouterr().err.splitlines()) == 5


def test_quiet_shows_warnings_alone(capsys):
    observer = QuietObserver()
    observer.notice("n")
    observer.step_logged(RECORD)
    observer.warning("w")
    assert capsys.readouterr().err == "warning: w\n"


def test_on_a_terminal_progress_is_a_bar_and_what_stays_is_printed_whole(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    from strata_cli.display.live import LiveObserver

    with LiveObserver() as observer:
        observer.stage_started("[red]reading", 10, "documents")
        observer.stage_advanced(5)
        observer.stage_finished()
        observer.training_started({"first_step": 0, "max_steps": 10, "device": "cpu"})
        observer.step_logged(RECORD)
        observer.evaluated({"step": 10, "loss": 4.0, "best": True})
        observer.notice("[/bold] a name " + "x" * 150)
    shown = terminal.getvalue()
    assert "step 10/10" in shown
    assert "loss 5.4322" in shown
    assert "evaluation at step 10: loss 4.0000 (best so far)" in shown
    assert "[/bold] a name " + "x" * 150 in shown
    assert "[red]reading" in shown


def test_a_finished_run_ends_with_its_figures_and_what_to_try_next(capsys):
    assert finish(RESULT, json_output=False, quiet=False) == 0
    shown = capsys.readouterr().out
    assert "training: finished" in shown
    assert "best bits per byte  1.9876 at step 200" in shown
    assert "strata resume 'runs/my run' --set run.max_steps=600" in shown
    assert "strata verify-manifest 'runs/my run'" in shown


def test_a_preempted_run_exits_75_and_says_how_to_go_on(capsys):
    assert finish({**RESULT, "stopped_because": "preempted"}, json_output=False, quiet=False) == 75
    assert capsys.readouterr().out.rstrip().endswith("next:\n  strata resume 'runs/my run'")


def test_quiet_prints_no_result_and_json_prints_one_object(capsys):
    finish(RESULT, json_output=False, quiet=True)
    assert capsys.readouterr().out == ""
    finish(RESULT, json_output=True, quiet=True)
    assert json.loads(capsys.readouterr().out) == RESULT


def test_json_stays_json_with_numbers_that_it_lacks(capsys):
    write_json({"loss": float("nan"), "all": [float("inf"), 1.5], "name": "bad\udcff"})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"loss": None, "all": [None, 1.5], "name": "bad\udcff"}
    assert shown.isascii()

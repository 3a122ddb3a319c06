"""Standard output and error under pipes, odd encodings, closed descriptors and no colour."""

import io
import json
import os
import subprocess
import sys

import pytest

from strata_cli.display.streams import columns, is_live, printable, wants_colour

ESCAPE = b"\x1b"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "colour", "live"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_colour_and_animation_follow_the_environment_on_a_terminal(monkeypatch, environment, colour, live):
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (wants_colour(Terminal()), is_live(Terminal())) == (colour, live)


def test_a_pipe_gets_neither_colour_nor_animation_even_when_forced(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not wants_colour(io.StringIO())
    assert not is_live(io.StringIO())


@pytest.mark.parametrize(("value", "width"), [("200", 200), ("20", 60), ("0", 80), ("x", 80)])
def test_tables_are_laid_out_for_the_terminal_but_never_too_narrow(monkeypatch, value, width):
    monkeypatch.setenv("COLUMNS", value)
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    assert columns() == width


def test_printable_text_is_untouched_and_the_rest_is_escaped():
    assert printable("données 日本 🐎 [red] \\n") == "données 日本 🐎 [red] \\n"
    assert printable("a\nb\r\x1b[31m\x00\udcff\u202e") == "a\\nb\\r\\x1b[31m\\x00\\xff\\u202e"


def test_json_in_a_pipe_is_the_same_bytes_at_any_width_and_has_no_escape(strata):
    plain = strata("recipes", "list", "--json")
    assert {recipe["name"] for recipe in json.loads(plain.stdout)["recipes"]} >= {"quickstart"}
    assert ESCAPE not in plain.stdout
    for environment in (
        {"COLUMNS": "20"},
        {"COLUMNS": "0"},
        {"COLUMNS": "200", "FORCE_COLOR": "1"},
        {"NO_COLOR": "1", "FORCE_COLOR": "1"},
    ):
        result = strata("recipes", "list", "--json", environment=environment)
        assert (result.returncode, result.stderr, result.stdout) == (0, b"", plain.stdout)


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"])
def test_help_in_a_pipe_has_no_escape(strata, variable):
    assert ESCAPE not in strata("train-lm", "--help", environment={variable: "1"}).stdout


def test_help_at_20_columns_shows_every_option_whole(strata):
    shown = strata("train-lm", "--help", environment={"COLUMNS": "20"}).stdout.decode()
    for option in ("--recipe", "--out", "--set", "--device", "--dry-run", "--json", "--quiet", "NAME_OR_PATH"):
        assert option in shown


def test_a_long_path_in_an_error_stays_on_one_line_at_20_columns(strata):
    path = "/" + "/".join(["long folder name"] * 12) + "/recipe.toml"
    result = strata("recipes", "check", path, environment={"COLUMNS": "20"})
    assert result.returncode == 2
    assert any(path in line for line in result.stderr.decode().splitlines())


def test_a_reader_that_leaves_early_causes_no_message_and_keeps_the_exit_code(strata):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = strata("recipes", "schema", "lm", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_full_disk_under_standard_output_is_an_error(strata):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "w") as full:
        result = strata("recipes", "list", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 5
    assert b"Traceback" not in result.stderr
    assert b"No space left" in result.stderr


@pytest.mark.parametrize("closed", [[1], [2], [0, 1, 2]])
def test_closed_streams_change_nothing_but_what_is_seen(strata, tmp_path, closed):
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    result = strata("recipes", "copy", "quickstart", "copied.toml", preexec_fn=close, capture_output=False)
    assert result.returncode == 0
    assert (tmp_path / "copied.toml").read_bytes().startswith(b"# ")


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_names_that_are_no_text_are_shown_escaped_in_any_locale(strata, tmp_path, locale):
    folder = os.fsencode(tmp_path) + b"/bad\xff"
    os.mkdir(folder)
    copied = strata("recipes", "copy", "quickstart", folder, environment=locale)
    assert copied.returncode == 0
    assert b"bad\\xff/quickstart.toml" in copied.stdout or b"bad\\udcff/quickstart.toml" in copied.stdout
    taken = strata("recipes", "copy", "quickstart", folder, environment=locale)
    assert taken.returncode == 6
    assert b"bad\\xff/quickstart.toml exists already" in taken.stderr


ODD_NAMES = (
    "with space",
    "données 日本 🐎",
    "[v1] run [/bold] [red]x",
    "quote'\"$(touch CANARY)",
    "new\nline",
    "%s {0} \\n",
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_case_x05_odd_folder_names_work_and_come_out_whole(strata, tmp_path, name):
    (tmp_path / name).mkdir(parents=True)
    assert strata("recipes", "copy", "quickstart", name).returncode == 0
    checked = strata("recipes", "check", f"{name}/quickstart.toml", environment={"PYTHONUTF8": "1"})
    assert checked.returncode == 0
    assert printable(name) in printable(checked.stdout.decode()) or name in checked.stdout.decode()
    assert not (tmp_path / "CANARY").exists()


def test_case_x05_a_name_that_starts_with_a_dash_works_behind_a_double_dash(strata, tmp_path):
    assert strata("recipes", "copy", "quickstart", "--", "-dash").returncode == 0
    assert strata("recipes", "check", "--", "-dash").returncode == 0


def test_python_dash_m_works_for_both_names(tmp_path):
    for module in ("strata", "strata_cli"):
        result = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, cwd=tmp_path)
        assert result.stdout.startswith(b"strata ")

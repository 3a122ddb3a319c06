import pytest

from strata_cli import main
from strata_core import errors


@pytest.fixture
def failing(monkeypatch):
    """Makes the command end with an exception."""

    def fail_with(error: BaseException) -> None:
        def invoke(arguments):
            raise error

        monkeypatch.setattr(main, "_invoke", invoke)

    return fail_with


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError("m"), 2),
        (errors.RecipeError("m"), 2),
        (errors.MemoryFitError("m"), 3),
        (errors.VerificationError("m"), 4),
        (errors.DataError("m"), 5),
        (errors.StorageError("m"), 5),
        (errors.PlaceTakenError("m"), 6),
        (errors.DivergedError("m"), 7),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("division by zero"), 1),
    ],
)
def test_every_way_to_end_has_its_exit_code_and_no_traceback(failing, capsys, error, code):
    failing(error)
    assert main.run([]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err


def test_an_error_shows_message_problems_and_hint_on_lines_of_their_own(failing, capsys):
    failing(errors.RecipeError("two things", problems=("a.toml:1: x", "a.toml:2: y"), hint="do z"))
    main.run([])
    assert capsys.readouterr().err == "error: two things\n  a.toml:1: x\n  a.toml:2: y\nhint: do z\n"


def test_names_in_messages_are_whole_unstyled_and_on_one_line(failing, capsys):
    name = "[v1] run [/bold] [red]x/new\nline/bad\udcff/%s {0} \\n/données 日本 🐎"
    failing(errors.UsageError(f"{name}: there is no such file"))
    main.run([])
    expected = "error: [v1] run [/bold] [red]x/new\\nline/bad\\xff/%s {0} \\n/données 日本 🐎: there is no such file\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("arguments", [["--debug", "recipes"], ["recipes", "--debug"]])
def test_debug_shows_the_traceback_before_or_after_the_subcommand(failing, capsys, arguments):
    failing(errors.DataError("broken"))
    assert main.run(arguments) == 5
    assert "Traceback" in capsys.readouterr().err


def test_debug_behind_a_double_dash_is_an_argument():
    assert main._take_debug(["x", "--debug", "--", "--debug"]) == (True, ["x", "--", "--debug"])
    assert main._take_debug(["x", "--", "--debug"]) == (False, ["x", "--", "--debug"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["trian-lm"], "no such command 'trian-lm'"),
        (["train-lm"], "missing option '--recipe'"),
        (["train-lm", "--recipe", "quickstart", "--colour"], "no such option"),
        (["train-lm", "--recipe", "quickstart", "--device", "tpu"], "'tpu' is not one of"),
        (["resume"], "missing argument 'RUN_DIR'"),
        (["recipes", "shwo", "x"], "no such command 'shwo'"),
    ],
)
def test_a_usage_error_exits_2_and_names_the_help_to_read(capsys, arguments, told):
    assert main.run(arguments) == 2
    shown = capsys.readouterr()
    assert told in shown.err.lower().replace("run_dir", "RUN_DIR")
    assert "--help" in shown.err
    assert shown.out == ""


def test_a_misspelt_command_is_answered_with_the_nearest(capsys):
    main.run(["trian-lm"])
    assert "train-lm" in capsys.readouterr().err


def test_no_command_at_all_shows_the_help_and_exits_2(capsys):
    assert main.run([]) == 2
    assert "train-lm" in capsys.readouterr().out


def test_the_version_is_one_line(capsys):
    from strata_core import __version__

    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"strata {__version__}\n"

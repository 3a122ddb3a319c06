"""The entry point: runs the command and turns every way it can end into messages and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from strata_cli.display.errors import show_error, show_line
from strata_cli.display.streams import columns, prepare_streams
from strata_core.errors import EXIT_INTERRUPTED, StorageError, StrataError, UsageError

_COMPLETION_VARIABLE = "_STRATA_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs `strata` with these arguments (those of the process by default) and exits."""
    prepare_streams()
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except OSError as error:
        show_error(StorageError(f"cannot write to standard output: {error.strerror}"))
        code = StorageError.exit_code
        # A second attempt at interpreter exit would fail again, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code."""
    debug, arguments = _take_debug(arguments)
    _tame_typer()
    try:
        return _invoke(arguments)
    except StrataError as error:
        if debug:
            _show_traceback()
        _report(error)
        return error.exit_code
    except KeyboardInterrupt:
        show_line("interrupted", "stopped on request")
        return EXIT_INTERRUPTED
    except Exception as error:
        if debug:
            _show_traceback()
        hint = None if debug else "run the same command with --debug and report what it prints"
        _report(StrataError(f"a bug in strata: {type(error).__name__}: {error}", hint=hint))
        return StrataError.exit_code


def _report(error: StrataError) -> None:
    """Shows an error; one rank of several leaves that to its launcher, which knows who failed first."""
    from strata_core.launch import worker

    if worker.has_launcher():
        worker.report_failure(error)
    else:
        show_error(error)


def _take_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """Takes `--debug` out from wherever it stands before a `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(options) < end, options + arguments[end:]


def _tame_typer() -> None:
    """Tells typer what it does not find out by itself."""
    if _COMPLETION_VARIABLE in os.environ:
        # With rich at hand, typer imports it to strip markup from candidates that have none.
        sys.modules["rich"] = None  # type: ignore[assignment]
    # Help is not cut at few columns, and no codes go into a pipe.
    os.environ["TERMINAL_WIDTH"] = str(columns())
    if not sys.stdout.isatty():
        os.environ["_TYPER_FORCE_DISABLE_TERMINAL"] = "1"


def _invoke(arguments: list[str]) -> int:
    from typer import Abort, BadParameter
    from typer.main import get_command

    from strata_cli.app import app

    # typer exports one of its usage errors; the base of that one stands for all of them.
    usage_error: type[Exception] = BadParameter.__bases__[0]
    try:
        code = get_command(app).main(args=arguments, prog_name="strata", standalone_mode=False)
    except Abort:
        raise KeyboardInterrupt from None
    except usage_error as error:
        raise _as_usage_error(error) from None
    return code if isinstance(code, int) else 0


def _as_usage_error(error: Exception) -> UsageError:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "strata"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    return UsageError(message[:1].lower() + message[1:].rstrip("."), hint=f"see {command} --help")


def _show_traceback() -> None:
    import traceback

    traceback.print_exc()

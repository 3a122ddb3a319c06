"""`strata generate`: a language model goes on with a text."""

from __future__ import annotations

import sys
from typing import Any

from strata_cli.display.output import write_json
from strata_cli.display.progress import shown_progress
from strata_cli.display.streams import printable
from strata_core.errors import DataError, UsageError
from strata_core.files import expand_path
from strata_core.training.checkpoint_choice import check_choice


def generate(
    path: str,
    prompts: list[str],
    *,
    sampling: dict[str, Any],
    settings: dict[str, Any],
    start_from: str | None,
    device: str,
    json_output: bool,
    quiet: bool,
) -> int:
    """Continues prompts, and prints each with its continuations: as they grow where one text alone is asked for.

    Args:
        path: a run, or a checkpoint folder.
        prompts: texts; "-" is the lines of standard input. None of them: one that is empty.
        sampling: fields of Sampling.
        settings: the other fields of GenerationSettings.
        start_from: which checkpoint of a run; None: the best, or the latest where there is no best.
        device: "auto", "cpu", "cuda" or "mps".
        json_output: print one JSON object in place of text.
        quiet: show warnings and errors only.

    Returns:
        0.
    """
    if start_from is not None:
        check_choice(start_from)
    where = expand_path(path)
    if not where.exists():
        raise UsageError(f"{where}: no such file or directory", hint="name a run directory, or a checkpoint in one")
    texts = _prompts(prompts)
    from strata_core.inference.causal_model import open_causal_model
    from strata_core.inference.generation import GenerationSettings
    from strata_core.inference.generation import generate as continue_texts
    from strata_core.inference.sampling import Sampling
    from strata_core.training.trained import BEST_OR_LATEST

    asked = GenerationSettings(sampling=Sampling(**sampling), **settings)
    with shown_progress(quiet=quiet) as observer:
        model = open_causal_model(where, choose=start_from or BEST_OR_LATEST, device=device, observer=observer)
    if json_output:
        write_json({"prompts": [one.to_json() for one in continue_texts(model, texts, asked)]})
        return 0
    shown = _Shown(texts, asked.samples)
    continue_texts(model, texts, asked, shown.add)
    shown.finish()
    return 0


def _prompts(arguments: list[str]) -> list[str]:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError("a prompt is not UTF-8") from None
    if "-" not in arguments:
        return arguments or [""]
    if arguments.count("-") > 1:
        raise UsageError("- stands twice among the prompts: standard input can be read once")
    try:
        lines = sys.stdin.buffer.read().decode().splitlines() or [""]
    except UnicodeDecodeError as error:
        raise DataError(f"standard input is not UTF-8: byte {error.start}") from None
    place = arguments.index("-")
    return [*arguments[:place], *lines, *arguments[place + 1 :]]


class _Shown:
    """Prompts and continuations on standard output, with a line of their own between several."""

    def __init__(self, prompts: list[str], samples: int) -> None:
        self._prompts, self._samples = prompts, samples
        self._current: tuple[int, int] | None = None

    def add(self, prompt: int, sample: int, text: str) -> None:
        """Writes text of a continuation, and what stands before its first."""
        if self._current != (prompt, sample):
            self.finish()
            self._current = (prompt, sample)
            if len(self._prompts) * self._samples > 1:
                sys.stdout.write(f"--- prompt {prompt + 1}, sample {sample + 1}\n")
            sys.stdout.write(_safe(self._prompts[prompt]))
        sys.stdout.write(_safe(text))
        sys.stdout.flush()

    def finish(self) -> None:
        """Ends the line of the last continuation."""
        if self._current is not None:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._current = None


def _safe(text: str) -> str:
    """The text; for a terminal with control characters as escapes, since a model may write any."""
    if not sys.stdout.isatty():
        return text
    return "".join(character if character in "\n\t" else printable(character) for character in text)

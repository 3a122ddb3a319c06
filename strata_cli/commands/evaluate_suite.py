"""`strata evaluate --suite`: a language model on a suite of grammar."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strata_cli.display.output import write_json
from strata_cli.display.progress import shown_progress
from strata_core.errors import UsageError
from strata_core.files import expand_path
from strata_core.training.checkpoint_choice import check_choice


def evaluate_suite(
    path: str,
    suite: str | None,
    *,
    suite_path: str | None,
    compare: str | None,
    min_count: int | None,
    count_corpus: str | None,
    start_from: str | None,
    device: str,
    json_output: bool,
    quiet: bool,
) -> int:
    """Scores a model on a suite, and prints its accuracies.

    Args:
        path: a run, a checkpoint, or a folder of a Llama.
        suite: a suite's name, or a file of pairs.
        suite_path: where a suite with a name is.
        compare: another model.
        min_count, count_corpus: only pairs of words that a corpus has so often.
        start_from: which checkpoint of a run; None: the best, or the latest where there is no best.
        device: "auto", "cpu", "cuda" or "mps".
        json_output: print one JSON object in place of tables.
        quiet: show warnings and errors only, beside the result.

    Returns:
        0.
    """
    if suite is None:
        raise UsageError("--suite-path, --compare, --min-count and --count-corpus need --suite")
    if start_from is not None:
        check_choice(start_from)
    models = [_existing(one) for one in (path, compare) if one is not None]
    from strata_core.inference.causal_model import open_causal_model
    from strata_core.suites.evaluation import evaluate_suite as evaluate
    from strata_core.training.trained import BEST_OR_LATEST

    with shown_progress(quiet=quiet) as observer:
        choose = start_from or BEST_OR_LATEST
        model = open_causal_model(models[0], choose=choose, device=device, observer=observer)
        other = open_causal_model(models[1], device=device, observer=observer) if compare is not None else None
        result = evaluate(
            model,
            suite,
            None if suite_path is None else expand_path(suite_path),
            other=other,
            min_count=min_count,
            count_corpus=None if count_corpus is None else expand_path(count_corpus),
            observer=observer,
        )
    if json_output:
        write_json(result)
    else:
        from strata_cli.display.evaluation_tables import write_figures

        write_figures(f"{path} on {suite}", _for_people(result))
    return 0


def _existing(model: str) -> Path:
    where = expand_path(model)
    if not where.exists():
        raise UsageError(f"{where}: no such file or directory", hint="name a run directory, or a checkpoint in one")
    return where


def _for_people(result: Mapping[str, Any]) -> dict[str, Any]:
    """Without the name that the title has, and without paradigms, of which there are many; --json has them."""
    shown = {name: value for name, value in result.items() if name not in ("suite", "paradigms", "unplaced")}
    if unplaced := result.get("unplaced"):
        shown["unplaced items"] = sum(map(len, unplaced.values()))
    if isinstance(suites := shown.pop("suites", None), Mapping):
        shown["suites"] = {name: {"accuracy": accuracy} for name, accuracy in suites.items()}
    return shown

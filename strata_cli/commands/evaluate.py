"""`strata evaluate`: the metrics of a trained model on a split."""

from __future__ import annotations

from strata_cli.display.output import write_json
from strata_cli.display.progress import shown_progress
from strata_core.errors import UsageError
from strata_core.files import expand_path
from strata_core.training.checkpoint_choice import check_choice


def evaluate(
    path: str,
    *,
    start_from: str | None,
    corpus: str | None,
    split: str,
    device: str,
    confusion: bool,
    json_output: bool,
    quiet: bool,
) -> int:
    """Evaluates a run or checkpoint, and prints what it scored.

    Args:
        path: a run, or a checkpoint folder.
        start_from: which checkpoint of a run; None: the best, or the latest where there is no best.
        corpus: in place of the one it was trained on.
        split: which part of the corpus.
        device: "auto", "cpu", "cuda" or "mps".
        confusion: also what was taken for what.
        json_output: print one JSON object in place of tables.
        quiet: show warnings and errors only, beside the result.

    Returns:
        0.
    """
    if start_from is not None:
        check_choice(start_from)
    where, corpus_path = expand_path(path), None if corpus is None else expand_path(corpus)
    if not where.exists():
        raise UsageError(f"{where}: no such file or directory", hint="name a run directory, or a checkpoint in one")
    from strata_core.inference.evaluation import evaluate_trained
    from strata_core.training.trained import BEST_OR_LATEST

    with shown_progress(quiet=quiet) as observer:
        report = evaluate_trained(
            where,
            choose=start_from or BEST_OR_LATEST,
            corpus=corpus_path,
            split=split,
            device=device,
            observer=observer,
        )
    if json_output:
        write_json(report.to_json(confusion=confusion))
    else:
        from strata_cli.display.evaluation_tables import write_evaluation

        write_evaluation(report.to_json(confusion=confusion))
    return 0

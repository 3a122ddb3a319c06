"""`strata predict`: annotations or answers for new input."""

from __future__ import annotations

from strata_cli.display.prediction_output import check_place, write_prediction
from strata_cli.display.progress import shown_progress
from strata_core.errors import UsageError
from strata_core.files import expand_path
from strata_core.training.checkpoint_choice import check_choice


def predict(
    path: str, file: str, *, out: str | None, format: str, start_from: str | None, device: str, quiet: bool
) -> int:
    """Predicts for a file, and writes the result to standard output or to a new file.

    Args:
        path: a run, or a checkpoint folder.
        file: what to annotate or answer; "-" is standard input.
        out: the file to make; None: standard output.
        format: what the file holds, "auto" to go by its name.
        start_from: which checkpoint of a run; None: the best, or the latest where there is no best.
        device: "auto", "cpu", "cuda" or "mps".
        quiet: show warnings and errors only.

    Returns:
        0.
    """
    if start_from is not None:
        check_choice(start_from)
    where, target = expand_path(path), None if out is None else expand_path(out)
    if not where.exists():
        raise UsageError(f"{where}: no such file or directory", hint="name a run directory, or a checkpoint in one")
    source = file if file == "-" else str(expand_path(file))
    if target is not None:
        check_place(target)
    from strata_core.inference.prediction import predict_file
    from strata_core.training.trained import BEST_OR_LATEST

    with shown_progress(quiet=quiet) as observer:
        data = predict_file(
            where,
            source,
            format=format,
            choose=start_from or BEST_OR_LATEST,
            device=device,
            observer=observer,
            out_name=None if target is None else target.name,
        )
        write_prediction(data, target)
        if target is not None:
            observer.notice(f"wrote {target}")
    return 0

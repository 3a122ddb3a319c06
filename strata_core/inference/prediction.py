"""From a trained model and a file to the bytes of a file of predictions."""

from __future__ import annotations

from pathlib import Path

from strata_core.observer import SILENT, Observer
from strata_core.tasks.input_file import check_input
from strata_core.tasks.kind import Question
from strata_core.tasks.registry import kind_named
from strata_core.training.distributed import choose_device
from strata_core.training.precision import choose_precision
from strata_core.training.trained import BEST_OR_LATEST, find_trained


def predict_file(
    path: Path,
    file: str,
    *,
    format: str = "auto",
    choose: str = BEST_OR_LATEST,
    device: str = "auto",
    observer: Observer = SILENT,
    out_name: str | None = None,
) -> bytes:
    """What a trained model says of the content of a file.

    Args:
        path: a run, or a checkpoint folder.
        file: what the kind of model is asked about, sentences or queries; "-" is standard input.
        format: what the file holds, as the kind of model calls it; or "auto" to go by its name.
        choose: which checkpoint of a run; see `find_trained`.
        device: "auto", "cpu", "cuda" or "mps".
        observer: shown the progress.
        out_name: the name of the file that the result is to become, if any: in .conllup roles have columns.

    Returns:
        The bytes of a file: annotated sentences, or JSON Lines of answers.

    Raises:
        UsageError: no such run, checkpoint, file or device, or a model that has nothing to say of such a file.
        DataError: the checkpoint is not whole or of an unknown kind, or the file has faults; they are listed.
    """
    check_input(file)
    place = choose_device(device, 0)
    trained = find_trained(path, choose=choose, observer=observer)
    kind = kind_named(trained.config.get("kind"), source=str(trained.checkpoint.path / "config.json"))
    recipe = None if trained.run is None else trained.run.recipe_with(())[0]
    asked = "fp32" if recipe is None else recipe.run.precision
    force = recipe is not None and recipe.run.force_precision
    autocast = choose_precision(asked, place, force=force).autocast(place)
    return kind.predict(trained, Question(file, format, place, autocast, observer, out_name))

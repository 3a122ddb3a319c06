"""A trained model on data again: its task, and the model that the task builds, with the weights of the checkpoint."""

from __future__ import annotations

from torch import nn

from strata_core.errors import UsageError
from strata_core.recipes.tables import TrainingRecipe
from strata_core.tasks.registry import Data, make_task
from strata_core.training.task import Task
from strata_core.training.trained import Trained, config_differences


def check_same_corpus(trained: Trained, data: Data, *, hint: str) -> None:
    """Refuses a corpus whose manifest is not that of the one the run was trained on.

    Args:
        trained: a checkpoint in its run.
        data: the corpus where the run has it.
        hint: what can be done about it.

    Raises:
        UsageError: it has changed since.
    """
    if trained.corpus_digest != data.digest:
        raise UsageError(
            f"the corpus {data.path} has digest {data.digest}, {trained.path} was trained on {trained.corpus_digest}",
            hint=hint,
        )


def make_trained_task(trained: Trained, recipe: TrainingRecipe, data: Data) -> tuple[Task, nn.Module]:
    """The task of a recipe on its data, and its model with the trained weights, set to evaluation.

    Raises:
        UsageError: the data have other labels, names or sizes than the model's.
        RecipeError, DataError: recipe and data do not go together, or the weights are another model's.
    """
    task = make_task(recipe, data)
    differences = config_differences(task.config(), trained.config)
    if differences:
        raise UsageError(
            f"the corpus {data.path} does not go with {trained.checkpoint.path}",
            problems=tuple(differences),
            hint="evaluate on a corpus that was prepared as the model's own",
        )
    model = task.build_model()
    trained.load_into(model)
    return task, model

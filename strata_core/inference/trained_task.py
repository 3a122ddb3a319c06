"""A trained model on data again: its task, and the model that the task builds, with the weights of the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from strata_core.errors import UsageError
from strata_core.recipes.tables import TrainingRecipe
from strata_core.tasks.data import Data
from strata_core.tasks.registry import kind_named, make_task, model_from_config
from strata_core.training.task import Task
from strata_core.training.trained import Trained, config_differences


def make_trained_task(trained: Trained, recipe: TrainingRecipe, data: Data) -> tuple[Task, nn.Module]:
    """The task of a recipe on its data, and its model with the trained weights, set to evaluation.

    Raises:
        UsageError: the data are for another kind of model, or have other labels, names or sizes than the model's.
        RecipeError, DataError: recipe and data do not go together, or the weights are another model's.
    """
    task = make_task(recipe, data)
    problems = model_differences(task.config(), trained.config)
    if problems:
        raise UsageError(
            f"the corpus {data.path} does not go with {trained.checkpoint.path}",
            problems=tuple(problems),
            hint="evaluate on a corpus that was prepared as the model's own",
        )
    model = task.build_model()
    trained.load_into(model)
    return task, model


def trained_model(trained: Trained, device: torch.device) -> nn.Module:
    """The model itself, built from config.json alone, with its weights, set to evaluation.

    Raises:
        DataError: config.json is not one this version knows, or the weights are another model's.
    """
    model = model_from_config(trained.config)
    trained.load_into(model)
    return model.to(device)


def model_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """What differs between the config of a task on a corpus and that of a checkpoint.

    Models of other kinds have nothing in common that could be compared: there is one line, with the kinds in words.

    Raises:
        DataError: one of them is of a kind that this version does not know.
    """
    wanted, found = (kind_named(config.get("kind")) for config in (ours, theirs))
    if wanted is not found:
        return [f"such a corpus is for {wanted.described}; the checkpoint is {found.described}"]
    return config_differences(ours, theirs)

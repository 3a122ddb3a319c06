"""What a task tells of itself to the rest: the one thing that each folder here has to offer.

A kind is looked at by commands that must answer at once, so its module loads no torch: what needs torch is imported
inside the functions that a kind names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.observer import Observer

if TYPE_CHECKING:
    import torch
    from torch import nn

    from strata_core.recipes.tables import TrainingRecipe
    from strata_core.training.task import Task
    from strata_core.training.trained import Trained


@dataclass(frozen=True)
class Question:
    """A file that a trained model is asked about, and how to compute.

    Attributes:
        file: its path; "-" is standard input.
        format: what it holds, or "auto" to go by its name.
        device: where to compute.
        autocast: the context that forward passes run in.
        observer: shown the progress.
        out_name: the name of the file that the answer goes to, which may tell its form; None: it has no name.
    """

    file: str
    format: str
    device: torch.device
    autocast: Callable[[], AbstractContextManager[Any]]
    observer: Observer
    out_name: str | None = None


@dataclass(frozen=True)
class TaskKind:
    """One kind of task.

    Attributes:
        name: in config.json of its checkpoints, and of its `Task`.
        described: the model that it trains, in words, as in "the checkpoint is a language model".
        recipe_kind: of the recipes that train it: "lm" or "graph".
        suits: whether it is what a recipe asks of an open corpus (`registry.Data`); of several kinds the first in the
            registry is taken.
        make_task: the task of a recipe on its data. Raises RecipeError or DataError where they do not go together.
        build_model: the module that config.json describes, with torch's default values. Raises DataError where a field
            is unknown or missing.
        recipe_tables: settings under which `make_task` builds the model of a config.json, as tables of a recipe; for
            checkpoints that came without their run. May raise KeyError or TypeError on a config of another version.
        predict: what a trained model says of a file, as the bytes of another. Raises UsageError where this kind has
            nothing to say of such a file, DataError where the file has faults.
        recommends: the shipped recipe that trains on a corpus, by its directory and its corpus.json; None where the
            corpus is for another kind.
        optional_parts: what names of parameters begin with that a warm start may find missing, or leave aside.
        numbered: keys of config.json whose names, in their order, are what the model's numbers stand for: a warm start
            refuses others.
    """

    name: str
    described: str
    recipe_kind: str
    suits: Callable[[TrainingRecipe, Any], bool]
    make_task: Callable[[Any, Any], Task]
    build_model: Callable[[Mapping[str, Any]], nn.Module]
    recipe_tables: Callable[[Mapping[str, Any]], dict[str, Any]]
    predict: Callable[[Trained, Question], bytes]
    recommends: Callable[[Path, Mapping[str, Any]], str | None]
    optional_parts: tuple[str, ...] = ()
    numbered: tuple[str, ...] = ()

"""The kind of task that tells the relation between two nodes of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.tasks.kind import Question, TaskKind
from strata_core.tasks.rebuilding import graph_recipe_tables

if TYPE_CHECKING:
    from torch import nn

    from strata_core.corpus.graphs.corpus import GraphCorpus
    from strata_core.recipes.graph import GraphRecipe
    from strata_core.training.task import Task
    from strata_core.training.trained import Trained


def _make_task(recipe: GraphRecipe, corpus: GraphCorpus) -> Task:
    from strata_core.tasks.relation_prediction.task import RelationPredictionTask

    return RelationPredictionTask(recipe, corpus)


def _build_model(config: Mapping[str, Any]) -> nn.Module:
    from strata_core.models.graphs.path_composition import CompositionConfig, PathComposition

    return PathComposition(CompositionConfig.from_dict(config.get("model", {})))


def _predict(trained: Trained, question: Question) -> bytes:
    from strata_core.tasks.relation_prediction.prediction import answered_file

    return answered_file(trained, question)


def _recommends(corpus: Path, info: Mapping[str, Any]) -> str | None:
    from strata_core.corpus.graphs.example import Mode
    from strata_core.corpus.graphs.layout import GRAPHS_FOLDER

    if info.get("kind") != "graph":
        return None
    try:
        # One byte an example.
        modes = set((corpus / GRAPHS_FOLDER / "train" / "modes.bin").read_bytes())
    except OSError:
        return None
    return "graph/clutrr" if modes == {Mode.RELATION} else None


KIND = TaskKind(
    name="path-composition",
    described="a model of path composition",
    recipe_kind="graph",
    suits=lambda recipe, corpus: corpus.asks_for_labels,
    make_task=_make_task,
    build_model=_build_model,
    recipe_tables=graph_recipe_tables,
    predict=_predict,
    recommends=_recommends,
    numbered=("relations", "targets"),
)

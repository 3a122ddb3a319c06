"""The kind of task that answers queries over many small graphs."""

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
    from strata_core.tasks.graph_queries.task import GraphQueryTask

    return GraphQueryTask(recipe, corpus)


def _build_model(config: Mapping[str, Any]) -> nn.Module:
    from strata_core.models.graphs.graph_reasoner import GraphReasoner, ReasonerConfig

    return GraphReasoner(ReasonerConfig.from_dict(config.get("model", {})))


def _predict(trained: Trained, question: Question) -> bytes:
    from strata_core.tasks.graph_queries.prediction import answered_file

    return answered_file(trained, question)


def _recommends(corpus: Path, info: Mapping[str, Any]) -> str | None:
    return "graph/synthetic" if info.get("kind") == "graph" else None


KIND = TaskKind(
    name="graph-reasoner",
    described="a reasoner over many graphs",
    recipe_kind="graph",
    suits=lambda recipe, corpus: True,
    make_task=_make_task,
    build_model=_build_model,
    recipe_tables=graph_recipe_tables,
    predict=_predict,
    recommends=_recommends,
    numbered=("relations", "node_types"),
)

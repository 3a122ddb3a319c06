"""The kind of task that finds missing links of one large graph."""

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


_MANY_ENTITIES = 10_000
"""With more, an evaluation of every validation triple takes longer than the training between two evaluations."""


def _make_task(recipe: GraphRecipe, corpus: GraphCorpus) -> Task:
    from strata_core.tasks.link_prediction.task import LinkPredictionTask

    return LinkPredictionTask(recipe, corpus)


def _build_model(config: Mapping[str, Any]) -> nn.Module:
    from strata_core.models.graphs.knowledge_graph_reasoner import KnowledgeGraphConfig, KnowledgeGraphReasoner

    return KnowledgeGraphReasoner(KnowledgeGraphConfig.from_dict(config.get("model", {})))


def _predict(trained: Trained, question: Question) -> bytes:
    from strata_core.tasks.link_prediction.prediction import answered_file

    return answered_file(trained, question)


def _recommends(corpus: Path, info: Mapping[str, Any]) -> str | None:
    if info.get("kind") != "graph" or info.get("origin") != "triples":
        return None
    return "graph/wn18rr" if info.get("entities", 0) > _MANY_ENTITIES else "graph/umls"


KIND = TaskKind(
    name="knowledge-graph",
    described="a model of one knowledge graph",
    recipe_kind="graph",
    suits=lambda recipe, corpus: corpus.info.origin == "triples",
    make_task=_make_task,
    build_model=_build_model,
    recipe_tables=graph_recipe_tables,
    predict=_predict,
    recommends=_recommends,
    numbered=("relations",),
)

"""The kind of task that predicts the next token of a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.errors import UsageError
from strata_core.tasks.kind import Question, TaskKind
from strata_core.tasks.rebuilding import described_shape

if TYPE_CHECKING:
    from torch import nn

    from strata_core.corpus.reading import Corpus
    from strata_core.recipes.lm import LMRecipe
    from strata_core.training.task import Task
    from strata_core.training.trained import Trained


def _make_task(recipe: LMRecipe, corpus: Corpus) -> Task:
    from strata_core.tasks.language_model.task import LanguageModelTask

    return LanguageModelTask(recipe, corpus)


def _build_model(config: Mapping[str, Any]) -> nn.Module:
    from strata_core.models import LanguageModel, TransformerConfig

    return LanguageModel(TransformerConfig.from_dict(config.get("model", {})))


def _recipe_tables(config: Mapping[str, Any]) -> dict[str, Any]:
    model = described_shape(config["model"])
    return {"kind": "lm", "model": model, "batch": {"seq_len": model["max_seq_len"], "batch_size": 16}}


def _predict(trained: Trained, question: Question) -> bytes:
    raise UsageError(
        f"{trained.checkpoint.path} is a language model of text alone, which has no annotation or answers to give",
        hint="strata predict is for models trained with structure (lm/mixed, lm/ud, ...) or on graphs",
    )


def _recommends(corpus: Path, info: Mapping[str, Any]) -> str | None:
    return None if info.get("kind") == "graph" else "lm/small"


KIND = TaskKind(
    name="lm",
    described="a language model",
    recipe_kind="lm",
    suits=lambda recipe, corpus: True,
    make_task=_make_task,
    build_model=_build_model,
    recipe_tables=_recipe_tables,
    predict=_predict,
    recommends=_recommends,
)

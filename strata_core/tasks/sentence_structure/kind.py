"""The kind of task that teaches a language model the structure of sentences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.tasks.kind import Question, TaskKind

if TYPE_CHECKING:
    from torch import nn

    from strata_core.corpus.reading import Corpus
    from strata_core.recipes.lm import LMRecipe
    from strata_core.training.task import Task
    from strata_core.training.trained import Trained


def _make_task(recipe: LMRecipe, corpus: Corpus) -> Task:
    from strata_core.tasks.sentence_structure.task import StructuredTask

    return StructuredTask(recipe, corpus)


def _build_model(config: Mapping[str, Any]) -> nn.Module:
    from strata_core.models import StructuredConfig, StructuredLanguageModel

    return StructuredLanguageModel(StructuredConfig.from_dict(config.get("model", {})))


def _recipe_tables(config: Mapping[str, Any]) -> dict[str, Any]:
    from strata_core.tasks.sentence_structure.rebuilding import recipe_tables

    return recipe_tables(config)


def _predict(trained: Trained, question: Question) -> bytes:
    from strata_core.tasks.sentence_structure.prediction import annotated_file

    return annotated_file(trained, question)


def _recommends(corpus: Path, info: Mapping[str, Any]) -> str | None:
    structure = info.get("structure")
    if not structure:
        return None
    return "lm/mixed" if structure["labels"].get("role") else "lm/ud"


KIND = TaskKind(
    name="structured-lm",
    described="a language model with structure",
    recipe_kind="lm",
    suits=lambda recipe, corpus: bool(recipe.is_structured),  # type: ignore[attr-defined]
    make_task=_make_task,
    build_model=_build_model,
    recipe_tables=_recipe_tables,
    predict=_predict,
    recommends=_recommends,
    optional_parts=(
        *("words.", "heads.", "predicate_memory.", "graph_object_memory.", "segmenter."),
        *("heads.word_labels.xpos.", "heads.word_labels.feats.", "heads.word_labels.lemma_rule."),
    ),
    numbered=("labels",),
)

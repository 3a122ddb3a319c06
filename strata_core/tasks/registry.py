"""The kinds of training: which data each opens, and which task it makes of a recipe and its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from strata_core.errors import RecipeError
from strata_core.observer import SILENT, Observer
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.task import Task

if TYPE_CHECKING:
    from strata_core.corpus.graphs.corpus import GraphCorpus
    from strata_core.corpus.reading import Corpus
    from strata_core.recipes.graph import GraphRecipe
    from strata_core.recipes.lm import LMRecipe


class Data(Protocol):
    """An open corpus of whatever kind."""

    @property
    def path(self) -> Path:
        """The directory."""

    @property
    def digest(self) -> str:
        """Of its manifest, 64 hexadecimal digits."""

    @property
    def tokenizer_path(self) -> Path | None:
        """The tokenizer of its text; None where it holds no text."""


def open_data(recipe: TrainingRecipe, observer: Observer = SILENT) -> Data:
    """The corpus that a recipe names; a sample is prepared on first use.

    Raises:
        RecipeError: it names none.
        UsageError, DataError: the corpus is not there, or cannot be read as what the recipe needs.
    """
    if recipe.corpus.path is None and recipe.corpus.sample is None:
        raise RecipeError("the recipe names no corpus", hint="--set corpus.path=DIR or --set corpus.sample=NAME")
    if recipe.kind == "graph":
        return _open_graphs(cast("GraphRecipe", recipe), observer)
    return _open_text(cast("LMRecipe", recipe), observer)


def _open_text(recipe: LMRecipe, observer: Observer) -> Corpus:
    from strata_core.corpus.preparing.samples import sample_corpus
    from strata_core.corpus.reading import open_corpus

    table = recipe.corpus
    if table.path is not None:
        return open_corpus(table.path)
    assert table.sample is not None
    return open_corpus(sample_corpus(table.sample, vocab_size=table.sample_vocab_size, observer=observer))


def _open_graphs(recipe: GraphRecipe, observer: Observer) -> GraphCorpus:
    from strata_core.corpus.graphs.corpus import open_graph_corpus
    from strata_core.corpus.graphs.preparation import GraphSettings
    from strata_core.corpus.graphs.samples import graph_sample_corpus

    table = recipe.corpus
    if table.path is not None:
        return open_graph_corpus(table.path)
    assert table.sample is not None
    settings = GraphSettings(**table.model_dump(exclude={"path", "sample"}))
    return open_graph_corpus(graph_sample_corpus(table.sample, settings, observer=observer))


def make_task(recipe: TrainingRecipe, data: Any) -> Task:
    """The task of a recipe on its opened data.

    Raises:
        RecipeError, DataError: they do not go together.
    """
    if recipe.kind == "graph":
        task = _graph_task(cast("GraphRecipe", recipe), data)
    else:
        task = _text_task(cast("LMRecipe", recipe), data)
    if recipe.evaluation.metric not in task.metric_directions:
        raise RecipeError(
            f"evaluation.metric is {recipe.evaluation.metric!r}, which this corpus does not give",
            hint=f"{data.path} gives {', '.join(task.metric_directions)}",
        )
    return task


def _text_task(recipe: LMRecipe, corpus: Corpus) -> Task:
    if recipe.is_structured:
        from strata_core.tasks.sentence_structure.task import StructuredTask

        return StructuredTask(recipe, corpus)
    from strata_core.tasks.language_model.task import LanguageModelTask

    return LanguageModelTask(recipe, corpus)


def _graph_task(recipe: GraphRecipe, corpus: GraphCorpus) -> Task:
    """What a corpus of graphs asks for goes by where it came from, in JSON Lines by its training examples."""
    if corpus.info.origin == "triples":
        from strata_core.tasks.link_prediction.task import KnowledgeGraphTask

        return KnowledgeGraphTask(recipe, corpus)
    if corpus.asks_for_labels:
        from strata_core.tasks.relation_prediction.task import KinshipTask

        return KinshipTask(recipe, corpus)
    from strata_core.tasks.graph_queries.task import GraphReasoningTask

    return GraphReasoningTask(recipe, corpus)

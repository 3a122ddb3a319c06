"""The corpus that a recipe names, opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from strata_core.errors import RecipeError, UsageError
from strata_core.observer import SILENT, Observer

if TYPE_CHECKING:
    from strata_core.corpus.graphs.corpus import GraphCorpus
    from strata_core.corpus.reading import Corpus
    from strata_core.recipes.graph import GraphRecipe
    from strata_core.recipes.lm import LMRecipe
    from strata_core.recipes.tables import TrainingRecipe
    from strata_core.training.trained import Trained


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

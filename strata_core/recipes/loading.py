"""From a recipe's name or path to its settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast, overload

from strata_core.errors import RecipeError
from strata_core.recipes.document import Document, read_document

if TYPE_CHECKING:
    from strata_core.recipes.corpus import CorpusRecipe
    from strata_core.recipes.graph import GraphRecipe
    from strata_core.recipes.lm import LMRecipe
    from strata_core.recipes.tables import TrainingRecipe

TRAINING_KINDS = ("lm", "graph")
"""The kinds of recipe that train a model."""

PATH_KEYS = {
    "lm": ("corpus.path", "run.warm_start"),
    "graph": ("corpus.path", "run.warm_start"),
    "corpus": ("prepare.inputs", "prepare.roles", "prepare.tokenizer"),
}
"""For each kind the keys whose values are paths."""

ALTERNATIVES = {
    "lm": (("corpus.path", "corpus.sample"), ("optimizer.warmup_steps", "optimizer.warmup_ratio")),
    "graph": (("corpus.path", "corpus.sample"), ("optimizer.warmup_steps", "optimizer.warmup_ratio")),
    "corpus": (("prepare.inputs", "prepare.sample"), ("prepare.tokenizer", "prepare.vocab_size")),
}
"""For each kind the pairs of which one is written: a later layer that writes one takes the other back."""

_COMMANDS = {"lm": "strata train-lm", "graph": "strata train-graph", "corpus": "strata prepare-corpus"}


@overload
def load_recipe(
    name_or_path: str | os.PathLike[str], kind: Literal["lm"] = "lm", overrides: Sequence[str] = ()
) -> LMRecipe: ...
@overload
def load_recipe(
    name_or_path: str | os.PathLike[str], kind: Literal["graph"], overrides: Sequence[str] = ()
) -> GraphRecipe: ...
@overload
def load_recipe(
    name_or_path: str | os.PathLike[str], kind: Literal["corpus"], overrides: Sequence[str] = ()
) -> CorpusRecipe: ...
def load_recipe(
    name_or_path: str | os.PathLike[str], kind: str = "lm", overrides: Sequence[str] = ()
) -> TrainingRecipe | CorpusRecipe:
    """Reads, merges, checks and completes a recipe.

    Overrides win over the recipe, the recipe over its base. Nothing is read from environment variables.

    Args:
        name_or_path: a shipped recipe's name ("lm/small") or the path of a TOML file.
        kind: what the recipe has to make, "lm", "graph" or "corpus".
        overrides: texts of the form key=value, as `--set` takes them; paths in them are relative to the
            working directory, those in a file to its folder.

    Returns:
        A frozen tree with the recipe's tables and keys as attributes; derived settings have their values.

    Raises:
        UsageError: the recipe is not there, or an override is malformed.
        RecipeError: the recipe cannot be read, is of another kind, or breaks rules; all faults at once.
    """
    return _load(name_or_path, kind, overrides)


def load_any_recipe(name_or_path: str | os.PathLike[str]) -> TrainingRecipe | CorpusRecipe:
    """As `load_recipe`, of the kind that the recipe itself names ("lm" where it names none)."""
    return _load(name_or_path, _kind_named_in(name_or_path, tuple(PATH_KEYS)))


def load_training_recipe(
    name_or_path: str | os.PathLike[str], overrides: Sequence[str] = (), *, kind: str | None = None
) -> TrainingRecipe:
    """As `load_recipe`, of a kind of training; None for the one that the recipe names ("lm" where it names none)."""
    kind = kind or _kind_named_in(name_or_path, TRAINING_KINDS)
    return cast("TrainingRecipe", _load(name_or_path, kind, overrides))


def _kind_named_in(name_or_path: str | os.PathLike[str], kinds: Sequence[str]) -> str:
    kind = read_document(name_or_path, (), ()).tables.get("kind", "lm")
    return kind if kind in kinds else "lm"


def _load(
    name_or_path: str | os.PathLike[str], kind: str, overrides: Sequence[str] = ()
) -> TrainingRecipe | CorpusRecipe:
    document = read_document(name_or_path, PATH_KEYS[kind], ALTERNATIVES[kind], overrides)
    _refuse_other_kind(document, kind)
    return _complete(document, kind)


def _complete(document: Document, kind: str) -> TrainingRecipe | CorpusRecipe:
    from strata_core.recipes.checking import check_document
    from strata_core.recipes.deriving import fill_derived
    from strata_core.recipes.tables import TrainingRecipe

    recipe = check_document(document, kind)
    return fill_derived(recipe) if isinstance(recipe, TrainingRecipe) else cast("CorpusRecipe", recipe)


def _refuse_other_kind(document: Document, kind: str) -> None:
    found = document.tables.get("kind", kind)
    if found != kind and found in _COMMANDS:
        raise RecipeError(
            f"{document.place_of(('kind',))}: kind = {found!r}: this takes recipes of kind {kind!r}",
            hint=f"use `{_COMMANDS[found]} --recipe {document.name}`",
        )

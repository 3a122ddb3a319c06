"""What the shell offers to complete. Nothing here imports torch or pydantic, and no fault is ever printed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import typer

_RUNS_FOLDER = "runs"


def all_recipes(incomplete: str) -> list[str]:
    """Names of shipped recipes."""
    from strata_core.recipes.names import list_recipes

    return list_recipes()


def lm_recipes(incomplete: str) -> list[str]:
    """Names of shipped recipes that train a language model."""
    return [name for name in all_recipes(incomplete) if not name.startswith(("corpus/", "graph/"))]


def graph_recipes(incomplete: str) -> list[str]:
    """Names of shipped recipes that train a graph reasoner."""
    return [name for name in all_recipes(incomplete) if name.startswith("graph/")]


def corpus_recipes(incomplete: str) -> list[str]:
    """Names of shipped recipes that make a corpus."""
    return [name for name in all_recipes(incomplete) if name.startswith("corpus/")]


def recipe_kinds(incomplete: str) -> list[str]:
    """Kinds of recipe."""
    from strata_core.recipes.kinds import MODELS

    return list(MODELS)


def lm_keys(incomplete: str) -> list[str]:
    """Keys for `--set` of a language model's recipe."""
    return _keys("lm")


def graph_keys(incomplete: str) -> list[str]:
    """Keys for `--set` of a graph reasoner's recipe."""
    return _keys("graph")


def _keys(kind: str) -> list[str]:
    from strata_core.recipes.keys import key_names

    return [f"{key}=" for key in key_names(kind) if "." in key]


def resumable_keys(incomplete: str) -> list[str]:
    """Keys for `--set` on a resume."""
    from strata_core.recipes.changes import RESUMABLE_KEYS

    return [f"{key}=" for key in sorted(RESUMABLE_KEYS)]


def samples(incomplete: str) -> list[str]:
    """Built-in samples."""
    return ["python-topics", "synthetic-reasoning", "synthetic-role-edits", "synthetic-treebank"]


def run_directories(incomplete: str) -> list[str]:
    """Run directories beside what is typed so far, and those under runs/ while nothing is typed."""
    typed = os.path.dirname(incomplete)
    folders = [typed] if typed else ["", _RUNS_FOLDER]
    return sorted(path for folder in folders for path in _runs_in(folder))


def _runs_in(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(os.path.expanduser(folder) or ".")
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(os.path.join(os.path.expanduser(path), "recipe.toml")):
            yield path


def checkpoints(context: typer.Context, incomplete: str) -> list[str]:
    """latest, best, and the steps saved in the run that is already on the line."""
    # The option at the end still lacks its value, and where it does, arguments before it are left as they came.
    run = context.params.get("run_dir") or context.params.get("path") or next(iter(context.args), None)
    folder = Path(os.path.expanduser(run), "checkpoints") if run else None
    steps = []
    if folder is not None and folder.is_dir():
        steps = sorted(int(path.name[5:]) for path in folder.glob("step-*") if path.name[5:].isdecimal())
    return ["latest", "best", *map(str, reversed(steps))]


def splits(context: typer.Context, incomplete: str) -> list[str]:
    """Splits of the corpus that is named on the line, or the usual ones."""
    import json

    corpus = context.params.get("corpus")
    try:
        found = json.loads(Path(os.path.expanduser(corpus), "corpus.json").read_bytes())["splits"] if corpus else None
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    return list(found) if isinstance(found, dict) else ["val", "test", "train"]

"""The command that trains on a corpus."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strata_cli.display.streams import printable


def training_command(corpus: Path) -> str:
    """What to type to train on a corpus: the command and the recipe that go with what is in it.

    Args:
        corpus: its directory; one that cannot be read is taken for text.
    """
    from strata_core.corpus.format import CORPUS_JSON

    try:
        found = json.loads((corpus / CORPUS_JSON).read_bytes())
    except (OSError, ValueError):
        found = {}
    recipe = _graph_recipe(corpus, found) if found.get("kind") == "graph" else _language_recipe(found)
    command = "train-graph" if recipe.startswith("graph/") else "train-lm"
    settings = f"--set corpus.path={shlex.quote(printable(str(corpus)))}"
    if found and not _validates(found):
        settings += " --set evaluation.every=0"
    return f"strata {command} --recipe {recipe} {settings}"


def _language_recipe(found: Mapping[str, Any]) -> str:
    structure = found.get("structure")
    if not structure:
        return "lm/small"
    return "lm/mixed" if structure["labels"].get("role") else "lm/ud"


def _graph_recipe(corpus: Path, found: Mapping[str, Any]) -> str:
    from strata_core.corpus.graphs.example import Mode
    from strata_core.corpus.graphs.layout import GRAPHS_FOLDER

    if found.get("origin") == "triples":
        return "graph/umls"
    try:
        # One byte an example.
        modes = set((corpus / GRAPHS_FOLDER / "train" / "modes.bin").read_bytes())
    except OSError:
        modes = set()
    return "graph/clutrr" if modes == {Mode.RELATION} else "graph/synthetic"


def _validates(found: Mapping[str, Any]) -> bool:
    split = found.get("splits", {}).get("val", {})
    return bool(split.get("examples") or split.get("tokens"))

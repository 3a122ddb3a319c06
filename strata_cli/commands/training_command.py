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
    from strata_core.tasks.registry import recommended_recipe

    try:
        found = json.loads((corpus / CORPUS_JSON).read_bytes())
    except (OSError, ValueError):
        found = {}
    recipe, kind = recommended_recipe(corpus, found)
    command = "train-graph" if kind.recipe_kind == "graph" else "train-lm"
    settings = f"--set corpus.path={shlex.quote(printable(str(corpus)))}"
    if found and not _validates(found):
        settings += " --set evaluation.every=0"
    return f"strata {command} --recipe {recipe} {settings}"


def _validates(found: Mapping[str, Any]) -> bool:
    split = found.get("splits", {}).get("val", {})
    return bool(split.get("examples") or split.get("tokens"))

"""The command that trains on a corpus."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

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
    command = "strata train-lm --recipe lm/small"
    if found.get("kind") == "graph":
        recipe = "graph/clutrr" if found.get("targets") else "graph/synthetic"
        command = f"strata train-graph --recipe {'graph/umls' if found.get('origin') == 'triples' else recipe}"
    return f"{command} --set corpus.path={shlex.quote(printable(str(corpus)))}"

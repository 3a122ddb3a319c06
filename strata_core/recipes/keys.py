"""The keys of a kind of recipe, read from the source of its classes: completion has no time for pydantic."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from strata_core.recipes.kinds import MODELS


@cache
def key_names(kind: str) -> tuple[str, ...]:
    """The dotted keys of a kind of recipe, in the order of their declaration: "kind", ..., "run.seed", ..."""
    module, top = MODELS[kind]
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return tuple(_keys(classes, top, ""))


def _keys(classes: dict[str, ast.ClassDef], name: str, prefix: str) -> list[str]:
    keys = []
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            key = prefix + node.target.id
            if isinstance(node.annotation, ast.Name) and node.annotation.id in classes:
                keys += _keys(classes, node.annotation.id, f"{key}.")
            else:
                keys.append(key)
    return keys

"""The keys of a kind of recipe, read from the source of its classes: completion has no time for pydantic."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from strata_core.recipes.kinds import MODELS

SHARED_TABLES = "tables"


@cache
def key_names(kind: str) -> tuple[str, ...]:
    """The dotted keys of a kind of recipe, in the order of their declaration: "kind", ..., "run.seed", ..."""
    module, top = MODELS[kind]
    classes = {node.name: node for name in (SHARED_TABLES, module) for node in _classes_of(name)}
    return tuple(_keys(classes, top, ""))


def _classes_of(module: str) -> list[ast.ClassDef]:
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _keys(classes: dict[str, ast.ClassDef], name: str, prefix: str) -> list[str]:
    keys = []
    for field, table in _fields(classes, name).items():
        keys += [prefix + field] if table is None else _keys(classes, table, f"{prefix}{field}.")
    return keys


def _fields(classes: dict[str, ast.ClassDef], name: str) -> dict[str, str | None]:
    """The fields of a class, those of its bases first, each with the class of the table that it holds."""
    fields: dict[str, str | None] = {}
    for base in classes[name].bases:
        if isinstance(base, ast.Name) and base.id in classes:
            fields |= _fields(classes, base.id)
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            annotation = node.annotation.id if isinstance(node.annotation, ast.Name) else None
            fields[node.target.id] = annotation if annotation in classes else None
    return fields

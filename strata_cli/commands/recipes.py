"""`strata recipes`: find, explain, copy and check recipes."""

from __future__ import annotations

import os
from pathlib import Path

from strata_cli.display.output import write_json, write_text
from strata_core.errors import PlaceTakenError
from strata_core.files import expand_path, write_file
from strata_core.recipes import find_recipe, load_any_recipe
from strata_core.recipes import list_recipes as shipped_recipes


def list_recipes(*, json_output: bool) -> int:
    """Prints the shipped recipes with the first line of the comment each file starts with."""
    found = [
        {"name": name, "description": _first_comment(find_recipe(name)), "path": str(find_recipe(name))}
        for name in shipped_recipes()
    ]
    if json_output:
        write_json({"recipes": found})
        return 0
    width = max(len(recipe["name"]) for recipe in found)
    write_text("\n".join(f"{recipe['name']:<{width}}  {recipe['description']}" for recipe in found))
    return 0


def show_recipe(name: str, *, resolved: bool, json_output: bool) -> int:
    """Prints a recipe: its file, or all its settings as TOML or JSON."""
    from strata_core.recipes import dump_recipe, recipe_tables

    if json_output:
        write_json(recipe_tables(load_any_recipe(name)))
    elif resolved:
        write_text(dump_recipe(load_any_recipe(name)).decode())
    else:
        write_text(find_recipe(name).read_text(encoding="utf-8-sig", errors="surrogateescape"))
    return 0


def copy_recipe(name: str, destination: str) -> int:
    """Copies a recipe and prints where to."""
    source = find_recipe(name)
    target = expand_path(destination)
    if target.is_dir():
        target = target / source.name
    if os.path.lexists(target):
        raise PlaceTakenError(f"{target} exists already", hint="choose another name; nothing is overwritten")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_file(target, source.read_bytes())
    write_text(str(target))
    return 0


def check_recipe(path: str, *, json_output: bool) -> int:
    """Checks a recipe and says what is right about it."""
    from strata_core.recipes import recipe_digest

    recipe = load_any_recipe(path)
    digest = recipe_digest(recipe)
    if json_output:
        write_json({"path": str(find_recipe(path)), "kind": recipe.kind, "digest": digest, "verdict": "ok"})
    else:
        write_text(f"{path}: ok, a recipe of kind {recipe.kind}, digest {digest}")
    return 0


def print_schema(kind: str) -> int:
    """Prints the JSON Schema of a kind of recipe."""
    from strata_core.recipes.kinds import recipe_model

    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **recipe_model(kind).model_json_schema()}
    write_json(schema)
    return 0


def _first_comment(path: Path) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()

"""A document against the settings of its kind: a recipe, or every fault in it at once."""

from __future__ import annotations

import copy
from typing import Any

from pydantic import ValidationError

from strata_core.errors import RecipeError
from strata_core.recipes.document import Document
from strata_core.recipes.key_lines import KeyPath
from strata_core.recipes.kinds import recipe_model
from strata_core.recipes.nearest import suggestion
from strata_core.recipes.rules import RULES
from strata_core.recipes.settings import Table

_LONGEST_SHOWN_VALUE = 60


def check_document(document: Document, kind: str) -> Table:
    """The recipe a document describes, derived settings not yet filled in.

    Raises:
        RecipeError: with one problem a fault: where it is written, key, value, rule, nearest key.
    """
    model = recipe_model(kind)
    problems: list[tuple[KeyPath, str]] = []
    try:
        recipe = model.model_validate(document.tables)
    except ValidationError as error:
        problems = [(item["loc"], _rule(kind, item)) for item in error.errors(include_url=False)]
        recipe = model.model_validate(_without(document.tables, [path for path, _ in problems]))
    faulty = {_dotted(path) for path, _ in problems}
    for rule in RULES[kind]:
        if not faulty.intersection(_with_tables(rule.keys)) and (fault := rule.broken(recipe)):
            problems.append((_first_written(document, rule.keys), fault))
    if problems:
        raise _recipe_error(document, problems)
    return recipe


def _rule(kind: str, item: Any) -> str:
    if item["type"] == "extra_forbidden":
        remark = suggestion(kind, _dotted(item["loc"]))
        what = "unknown table" if isinstance(item["input"], dict) else "unknown key"
        return f"{what}; {remark}" if remark else what
    if item["type"] == "model_type":
        return "must be a table"
    if item["type"] == "missing":
        return "missing"
    return item["msg"].replace("Input should be", "must be")


def _without(tables: dict[str, Any], paths: list[KeyPath]) -> dict[str, Any]:
    """A copy without the faulty keys, so that rules over the others can still be looked at."""
    pruned = copy.deepcopy(tables)
    for path in paths:
        inner, key = pruned, str(path[0])
        for following in path[1:]:
            if not isinstance(inner.get(key), dict):
                break
            inner, key = inner[key], str(following)
        inner.pop(key, None)
    return pruned


def _with_tables(keys: tuple[str, ...]) -> set[str]:
    return {*keys, *(key.partition(".")[0] for key in keys)}


def _first_written(document: Document, keys: tuple[str, ...]) -> KeyPath:
    paths = [tuple(key.split(".")) for key in keys]
    return next((path for path in paths if path in document.places), ())


def _dotted(path: KeyPath) -> str:
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}"
    return text.removeprefix(".")


def _recipe_error(document: Document, problems: list[tuple[KeyPath, str]]) -> RecipeError:
    order = {place: index for index, place in enumerate(document.places.values())}
    problems = sorted(problems, key=lambda problem: order.get(document.place_of(problem[0]), len(order)))
    lines = tuple(_line(document, path, rule) for path, rule in problems)
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    return RecipeError(f"the recipe {document.name} has {count}", problems=lines)


def _line(document: Document, path: KeyPath, rule: str) -> str:
    place = document.place_of(path)
    if not path:
        return f"{place}: {rule}"
    if place.startswith("--set "):
        return f"{place}: {rule}"
    value = document.value_of(path)
    return f"{place}: {_dotted(path)}{'' if isinstance(value, dict) else f' = {_shown(value)}'}: {rule}"


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN_VALUE else f"{text[:_LONGEST_SHOWN_VALUE]}..."

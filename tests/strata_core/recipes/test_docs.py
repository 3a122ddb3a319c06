"""The pages on recipes name every key there is, and none that there is not."""

import re
from pathlib import Path

import pytest

from strata_core.recipes import RESUMABLE_KEYS, key_names
from strata_core.recipes.kinds import MODELS, recipe_model
from strata_core.recipes.nearest import FORMER_NAMES, suggestion

DOCS = Path(__file__).resolve().parents[3] / "docs"
ROW = re.compile(r"^\| `([\w.]+)` \| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)


def documented(kind: str) -> dict[str, tuple[str, ...]]:
    section = (DOCS / "recipes.md").read_text().partition(f"## Keys of kind `{kind}`")[2].partition("\n## ")[0]
    return {key: tuple(rest) for key, *rest in ROW.findall(section)}


def field_of(kind: str, key: str):
    model = recipe_model(kind)
    *tables, last = key.split(".")
    for table in tables:
        model = model.model_fields[table].annotation
    return model.model_fields[last]


@pytest.mark.parametrize("kind", MODELS)
def test_every_key_is_documented_with_its_meaning(kind):
    rows = documented(kind)
    assert tuple(rows) == key_names(kind)
    for key, (_, _, meaning) in rows.items():
        assert meaning == field_of(kind, key).description, key


@pytest.mark.parametrize("kind", MODELS)
def test_documented_defaults_are_the_defaults(kind):
    for key, (default, _, _) in documented(kind).items():
        value = field_of(kind, key).default
        words = {None: ("absent", "derived"), True: ("true",), False: ("false",), (): ("`[]`",)}
        shown = words.get(value) if isinstance(value, bool | tuple | None) else (f"`{value!r}`".replace("'", '"'),)
        assert default in shown, key


def test_old_names_lead_to_keys_that_exist():
    rows = re.findall(r"^\| `.*\| `([\w.]+)` \|", (DOCS / "knobs.md").read_text(), re.MULTILINE)
    assert len(rows) > 20
    assert set(rows) <= {*key_names("lm"), *key_names("graph")}


def test_every_old_name_is_answered_with_the_key_of_its_row_and_the_page_has_them_all():
    rows = re.findall(r"^\| (.*?) \| `([\w.]+)` \|", (DOCS / "knobs.md").read_text(), re.MULTILINE)
    keys = {name: key for old, key in rows for name in re.findall(r"`(\w+)`", old)}
    assert keys.keys() >= FORMER_NAMES.keys()
    for name, key in keys.items():
        for kind in ("lm", "graph"):
            if key in key_names(kind):
                assert re.search(rf"\b{re.escape(key)}( |$)", suggestion(kind, name)), (kind, name)
            elif name in FORMER_NAMES:
                assert FORMER_NAMES[name] not in suggestion(kind, name)


def test_what_a_resume_may_change_is_listed():
    text = (DOCS / "recipes.md").read_text().partition("## The resolved recipe")[2].partition("## ")[0]
    assert all(f"`{key}`" in text for key in RESUMABLE_KEYS)

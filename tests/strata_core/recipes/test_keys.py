import subprocess
import sys

import pytest
from pydantic import BaseModel

from strata_core.recipes import key_names
from strata_core.recipes.kinds import MODELS, recipe_model
from strata_core.recipes.loading import ALTERNATIVES, PATH_KEYS


def walk(model: type[BaseModel], prefix: str = "") -> list[tuple[str, object]]:
    """Keys with their fields as pydantic knows them."""
    found: list[tuple[str, object]] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += walk(field.annotation, f"{prefix}{name}.")
        else:
            found.append((prefix + name, field))
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_keys_read_from_source_are_those_pydantic_has(kind):
    assert list(key_names(kind)) == [key for key, _ in walk(recipe_model(kind))]


@pytest.mark.parametrize("kind", MODELS)
def test_every_setting_is_described_with_a_whole_sentence(kind):
    for key, field in walk(recipe_model(kind)):
        assert field.description, key
        assert field.description.endswith("."), key


@pytest.mark.parametrize("kind", MODELS)
def test_the_keys_that_hold_paths_are_those_declared_as_paths(kind):
    declared = [key for key, field in walk(recipe_model(kind)) if (field.json_schema_extra or {}) == {"format": "path"}]
    assert sorted(PATH_KEYS[kind]) == sorted(declared)


@pytest.mark.parametrize("kind", MODELS)
def test_alternatives_are_keys(kind):
    assert {key for pair in ALTERNATIVES[kind] for key in pair} <= set(key_names(kind))


def test_keys_are_found_without_pydantic_or_torch():
    code = (
        "import sys; sys.modules['pydantic'] = sys.modules['torch'] = None\n"
        "from strata_core.recipes import key_names, list_recipes\n"
        "assert 'run.seed' in key_names('lm') and 'lm/small' in list_recipes()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", MODELS)
def test_the_json_schema_has_units_and_refuses_unknown_keys(kind):
    schema = recipe_model(kind).model_json_schema()
    assert schema["additionalProperties"] is False
    if kind == "lm":
        assert schema["$defs"]["RunTable"]["properties"]["max_steps"]["unit"] == "steps"
        assert "default" not in schema["$defs"]["LMModelTable"]["properties"]["n_kv_heads"]

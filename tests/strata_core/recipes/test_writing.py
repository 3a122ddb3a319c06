import os
import tomllib
from pathlib import Path

import pytest

from strata_core.recipes import dump_recipe, list_recipes, load_any_recipe, load_recipe, recipe_digest, recipe_tables

MINIMAL = '[corpus]\nsample = "python-topics"\n'


@pytest.mark.parametrize("name", list_recipes())
def test_the_resolved_recipe_is_a_recipe_that_loads_to_an_equal_one(tmp_path, name):
    recipe = load_any_recipe(name)
    written = tmp_path / "resolved.toml"
    written.write_bytes(dump_recipe(recipe))
    assert load_any_recipe(written) == recipe
    assert dump_recipe(load_any_recipe(written)) == dump_recipe(recipe)


def test_the_resolved_recipe_keeps_overrides_and_derived_values_and_absolute_paths(write, tmp_path):
    path = write('[corpus]\npath = "c"\n[optimizer]\nwarmup_ratio = 0.1\n')
    tables = tomllib.loads(dump_recipe(load_recipe(path, overrides=["run.max_steps=200"])).decode())
    assert tables["corpus"]["path"] == str(tmp_path / "c")
    assert tables["optimizer"]["warmup_steps"] == 20
    assert tables["optimizer"]["schedule_steps"] == 200
    assert "warmup_ratio" not in tables["optimizer"]
    assert "skip_grad_norm" not in tables["optimizer"]


def test_a_resolved_schedule_stays_when_the_steps_are_raised_later(write):
    path = write(dump_recipe(load_recipe(write(MINIMAL))), "resolved.toml")
    recipe = load_recipe(path, overrides=["run.max_steps=900"])
    assert (recipe.run.max_steps, recipe.optimizer.schedule_steps) == (900, 100)


def test_the_digest_depends_on_settings_and_not_on_how_they_are_written(write):
    plain = recipe_digest(load_recipe(write(MINIMAL + "[run]\nseed = 7\nmax_steps = 50\n")))
    other = write(f"run.max_steps = 50\n# words\n{MINIMAL}\n[run]\n".replace("[run]\n", ""), "other.toml")
    assert recipe_digest(load_recipe(other, overrides=["run.seed=7"])) == plain
    assert recipe_digest(load_recipe(other, overrides=["run.seed=8"])) != plain
    assert len(plain) == 64


def test_line_ends_do_not_change_the_digest(write):
    text = 'description = """a\nb"""\n' + MINIMAL
    lf, crlf = write(text, "lf.toml"), write(text.replace("\n", "\r\n"), "crlf.toml")
    assert recipe_digest(load_recipe(lf)) == recipe_digest(load_recipe(crlf))


def test_a_path_that_is_not_utf8_survives_as_a_file_uri(write):
    path = Path(os.fsdecode(b"/data/bad\xff [v1]"))
    recipe = load_recipe(write(MINIMAL), overrides=[f"corpus.path={path}"])
    assert recipe_tables(recipe)["corpus"]["path"] == "file:///data/bad%FF%20%5Bv1%5D"
    assert load_recipe(write(dump_recipe(recipe), "resolved.toml")).corpus.path == path


@pytest.mark.parametrize(
    "name", ["with space", "données 日本", "[v1] run [/bold] [red]x", "new\nline", "quote'\"", "%s {0} \\n"]
)
def test_odd_paths_survive_the_resolved_recipe(write, tmp_path, name):
    recipe = load_recipe(write(MINIMAL), overrides=[f"corpus.path={tmp_path / name}"])
    assert recipe.corpus.path == tmp_path / name
    assert load_recipe(write(dump_recipe(recipe), "resolved.toml")).corpus.path == tmp_path / name

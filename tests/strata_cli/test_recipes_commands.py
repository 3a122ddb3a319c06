import json
import tomllib

import pytest

from strata_cli import main
from strata_core.recipes import find_recipe, list_recipes, load_recipe


def test_list_shows_every_recipe_on_a_line_with_what_it_is_for(capsys):
    assert main.run(["recipes", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list_recipes()
    assert all(len(line.split()) > 5 for line in lines)


def test_show_prints_the_file_and_resolved_prints_every_setting(capsys):
    main.run(["recipes", "show", "lm/small"])
    assert capsys.readouterr().out == find_recipe("lm/small").read_text()
    main.run(["recipes", "show", "lm/small", "--resolved"])
    assert tomllib.loads(capsys.readouterr().out)["optimizer"]["schedule_steps"] == 1000
    main.run(["recipes", "show", "lm/small", "--json"])
    assert json.loads(capsys.readouterr().out)["model"]["d_ff"] == 768


def test_copy_takes_a_file_or_a_folder_and_overwrites_nothing(tmp_path, capsys):
    assert main.run(["recipes", "copy", "lm/small", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'small.toml'}\n"
    assert main.run(["recipes", "copy", "lm/small", str(tmp_path / "new" / "mine.toml")]) == 0
    assert load_recipe(tmp_path / "new" / "mine.toml") == load_recipe("lm/small")
    (tmp_path / "small.toml").write_text("mine")
    assert main.run(["recipes", "copy", "lm/small", str(tmp_path)]) == 6
    assert (tmp_path / "small.toml").read_text() == "mine"


def test_copy_expands_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert main.run(["recipes", "copy", "quickstart", "~/r.toml"]) == 0
    assert (tmp_path / "home" / "r.toml").is_file()
    assert not (tmp_path / "~").exists()
    assert main.run(["recipes", "copy", "quickstart", "~nosuchuser/r.toml"]) == 2


@pytest.mark.parametrize("name", list_recipes())
def test_every_shipped_recipe_checks(capsys, name):
    assert main.run(["recipes", "check", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "ok"


def test_check_reports_every_fault_on_standard_error(tmp_path, capsys):
    path = tmp_path / "r.toml"
    path.write_text("[optimizer]\nlrr = 1\n[run]\nmax_steps = 0\n")
    assert main.run(["recipes", "check", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{path}:2: optimizer.lrr = 1" in shown.err
    assert f"{path}:4: run.max_steps = 0" in shown.err


@pytest.mark.parametrize("kind", ["lm", "graph", "corpus"])
def test_schema_is_a_json_schema_of_the_kind(capsys, kind):
    assert main.run(["recipes", "schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["properties"]["kind"]["const"] == kind


def test_schema_of_an_unknown_kind_is_a_usage_error(capsys):
    assert main.run(["recipes", "schema", "lmm"]) == 2
    assert "lm, graph, corpus" in capsys.readouterr().err

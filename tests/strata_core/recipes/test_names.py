import pytest

from strata_core.errors import UsageError
from strata_core.recipes import find_recipe, list_recipes


def test_shipped_recipes_are_listed_by_name_and_found():
    names = list_recipes()
    assert {"quickstart", "lm/small", "lm/base", "lm/1b", "corpus/python-topics"} <= set(names)
    assert names == sorted(names)
    assert all(find_recipe(name).is_file() for name in names)


def test_what_ends_in_toml_is_a_path_even_where_a_recipe_has_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart.toml").write_text("")
    assert find_recipe("quickstart.toml").resolve() == tmp_path / "quickstart.toml"
    assert find_recipe("quickstart").resolve() != tmp_path / "quickstart.toml"


def test_a_shipped_name_wins_over_a_file_beside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").write_text("")
    assert find_recipe("quickstart").resolve() != tmp_path / "quickstart"
    assert find_recipe("./quickstart").resolve() == tmp_path / "quickstart"


def test_a_file_without_the_ending_is_found_where_no_recipe_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("")
    assert find_recipe("mine").resolve() == tmp_path / "mine"


@pytest.mark.parametrize(
    ("asked", "hint"), [("lm/smal", "lm/small"), ("small", "lm/small"), ("xyz", "quickstart"), ("none.toml", "shipped")]
)
def test_an_unknown_name_is_answered_with_the_nearest_or_all(asked, hint):
    with pytest.raises(UsageError) as caught:
        find_recipe(asked)
    assert hint in (caught.value.hint or "")


def test_a_tilde_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "r.toml").write_text("")
    assert find_recipe("~/r.toml") == tmp_path / "r.toml"

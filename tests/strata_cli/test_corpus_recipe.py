import pytest

from strata_cli.commands.corpus_recipe import with_recipe

NOTHING_GIVEN = dict.fromkeys(("inputs", "sample", "vocab_size", "tokenizer", "val_fraction"))


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text('kind = "corpus"\n[prepare]\ninputs = ["a"]\nvocab_size = 300\nval_fraction = 0.5\n')
    return str(path)


def test_a_recipe_gives_what_no_option_gives(recipe, tmp_path):
    assert with_recipe(recipe, NOTHING_GIVEN) == {"inputs": (tmp_path / "a",), "vocab_size": 300, "val_fraction": 0.5}


def test_options_win_and_take_back_their_alternatives(recipe):
    given = {**NOTHING_GIVEN, "sample": "python-topics", "tokenizer": "t.json", "val_fraction": 0.0}
    assert with_recipe(recipe, given) == {"sample": "python-topics", "tokenizer": "t.json", "val_fraction": 0.0}

import datetime

import pytest

from strata_core.errors import UsageError
from strata_core.recipes.overrides import UNSET, parse_override


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k.a=5", 5),
        ("k.a=1e-3", 1e-3),
        ("k.a=true", True),
        ('k.a="5"', "5"),
        ("k.a=[1, 2]", [1, 2]),
        ("k.a={x = 1}", {"x": 1}),
        ("k.a = 7 ", 7),
        ("k.a=2026-01-02", datetime.date(2026, 1, 2)),
        ("k.a=lm/small", "lm/small"),
        ("k.a=~/corpus", "~/corpus"),
        ("k.a=[v1] run", "[v1] run"),
        ("k.a=x=y", "x=y"),
        ("k.a=1\nb=2", "1\nb=2"),
        ("k.a=none", "none"),
    ],
)
def test_values_are_toml_and_anything_else_is_a_string(text, value):
    assert parse_override(text) == (("k", "a"), value)


def test_an_empty_value_takes_the_key_back_to_its_default():
    assert parse_override("run.seed=") == (("run", "seed"), UNSET)


@pytest.mark.parametrize("text", ["run.seed", "=5", "run.=5", ".seed=5", "run..seed=5", ""])
def test_what_has_no_key_is_refused_with_the_form(text):
    with pytest.raises(UsageError, match="not of the form key=value"):
        parse_override(text)

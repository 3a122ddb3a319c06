"""Roles in MISC: written, escaped, read again, and told from other attributes."""

from __future__ import annotations

import pytest

from strata_core.corpus.treebanks.misc_roles import escape, misc_with, predicates_from_misc, role_attributes, unescape
from strata_core.corpus.treebanks.sentence import Argument, Predicate
from tests.strata_core.corpus.treebanks.helpers import read_text

GIVE = Predicate(1, "give.01", (Argument("ARG0", 2), Argument("ARG1", 3)))


def test_a_predicate_is_two_attributes_behind_those_that_were_there():
    attributes = role_attributes(GIVE)
    assert misc_with("_", attributes) == "Pred=give.01|Args=ARG0:2,ARG1:3"
    assert misc_with("SpaceAfter=No|X", attributes) == "SpaceAfter=No|X|Pred=give.01|Args=ARG0:2,ARG1:3"
    assert misc_with("Args=ARG0:9|A=1|Pred=Y", role_attributes(Predicate(1, "Y"))) == "A=1|Pred=Y"
    assert misc_with("Pred=Y|Args=ARG0:9", role_attributes(None)) == "_"


@pytest.mark.parametrize("value", ["a b", "a|b", "a,b", "a\\b", "a\tb\nc\rd", r"\p\s", "a=b:c"])
def test_values_with_characters_that_end_a_value_come_back(value):
    assert not set(escape(value)) & set(" |,\t\n\r")
    assert unescape(escape(value)) == value
    predicate = Predicate(1, value, (Argument(value, 1),))
    assert predicates_from_misc([misc_with("_", role_attributes(predicate))]) == (predicate,)


def test_predicates_are_read_off_ten_columns():
    misc = ["Pred=give.01|Args=ARG0:2,ARG1:3", "SpaceAfter=No", "_"]
    heads = [(0, "root"), (1, "nsubj"), (1, "obj")]
    rows = [
        f"{n}\tw\t_\t_\t_\t_\t{head}\t{relation}\t_\t{cell}\n"
        for n, ((head, relation), cell) in enumerate(zip(heads, misc, strict=True), 1)
    ]
    (sentence,), findings = read_text("".join(rows) + "\n")
    assert findings == []
    assert sentence.predicates == (GIVE,)


@pytest.mark.parametrize(
    "cells",
    [[None, "SpaceAfter=No"], ["Pred=x|Args=what"], ["Pred=x|Args=A:9"], ["Args=ARG0:1"], ["Pred=|Args=A:1"]],
    ids=["nothing", "no head", "head of no word", "no predicate", "empty predicate"],
)
def test_nothing_is_known_where_attributes_are_missing_or_mean_something_else(cells):
    assert predicates_from_misc(cells) is None

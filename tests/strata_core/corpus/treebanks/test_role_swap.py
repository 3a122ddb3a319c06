"""The edit that role-edit examples are made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strata_core.corpus.treebanks.role_swap import can_swap, swap_core_roles
from strata_core.corpus.treebanks.sentence import Argument, Predicate
from tests.strata_core.corpus.treebanks.helpers import read_real, read_text, rows


def sentence_with(*predicates):
    (sentence,), _ = read_text(rows("0", "1", "1", "1"))
    return replace(sentence, predicates=predicates)


def test_only_the_two_core_roles_of_one_predicate_change_places():
    one = Predicate(1, "see.01", (Argument("ARG0", 2), Argument("ARG1", 3), Argument("ARGM-TMP", 4)))
    other = Predicate(2, "go.01", (Argument("ARG0", 1), Argument("ARG1", 3)))
    sentence = sentence_with(one, other)
    swapped = swap_core_roles(sentence, 0)
    assert swapped.predicates == (
        Predicate(1, "see.01", (Argument("ARG1", 2), Argument("ARG0", 3), Argument("ARGM-TMP", 4))),
        other,
    )
    assert swap_core_roles(swapped, 0) == sentence


def test_a_predicate_without_both_roles_cannot_be_swapped():
    with pytest.raises(ValueError, match=r"go\.01 at word 1"):
        swap_core_roles(sentence_with(Predicate(1, "go.01", (Argument("ARG0", 2), Argument("R-ARG1", 3)))), 0)


@pytest.mark.parametrize(("split", "candidates"), [("dev", 1350), ("test", 1376)])
def test_a_real_treebank_has_as_many_candidates_as_its_readme_says(split, candidates):
    sentences, _ = read_real("EWT", split)
    assert sum(can_swap(predicate) for sentence in sentences for predicate in sentence.predicates or ()) == candidates

"""Minimal pairs differ in one verb form, and only agreement tells which is right."""

from __future__ import annotations

from collections import Counter

from strata_core.corpus.generators import lexicon
from strata_core.corpus.generators.agreement import BALANCED_BLOCK, CONDITIONS, agreement_pair

PLURALS = {noun.plural for noun in lexicon.PEOPLE}
PLURAL_VERBS = {verb.plural for verb in lexicon.INTRANSITIVE} | {"are"}

PAIRS = [agreement_pair(11, index) for index in range(20 * BALANCED_BLOCK)]


def test_a_pair_is_a_function_of_seed_and_index():
    assert agreement_pair(11, 40) == PAIRS[40] and agreement_pair(12, 40) != PAIRS[40]


def test_pairs_differ_in_the_verb_alone():
    for pair in PAIRS:
        different = [at for at, (one, other) in enumerate(zip(pair.right, pair.wrong, strict=True)) if one != other]
        assert different == [pair.position]


def test_the_right_verb_agrees_with_the_subject():
    for pair in PAIRS:
        plural = pair.right[1] in PLURALS
        assert (pair.right[pair.position] in PLURAL_VERBS) == plural
        assert (pair.wrong[pair.position] in PLURAL_VERBS) != plural


def test_attracted_pairs_have_a_noun_of_the_wrong_number_before_the_verb():
    for pair in PAIRS:
        nouns = [word for word in pair.right[: pair.position] if any(word in noun for noun in lexicon.PEOPLE)]
        assert pair.attracted == ((nouns[-1] in PLURALS) != (nouns[0] in PLURALS))


def test_conditions_and_numbers_are_balanced():
    cells = Counter((pair.condition, pair.right[1] in PLURALS, pair.attracted) for pair in PAIRS)
    for condition in CONDITIONS[1:]:
        assert {cells[condition, plural, attracted] for plural in (True, False) for attracted in (True, False)} == {20}
    assert cells["adjacent", True, False] == cells["adjacent", False, False] == 40

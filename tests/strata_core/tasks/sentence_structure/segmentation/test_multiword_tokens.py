"""Which words a token spells: as the treebank has it, in context where it has both, by rule where it is new."""

import pytest

from strata_core.errors import DataError
from strata_core.tasks.sentence_structure.segmentation.multiword_tokens import (
    KnownForm,
    MultiwordSplitter,
    count_forms,
    known_multiword_tokens,
)
from strata_core.tasks.sentence_structure.token_spans import TokenSpan

KNOWN = [
    KnownForm("don't", ("do", "n't"), 9, 0),
    KnownForm("isn't", ("is", "n't"), 4, 0),
    KnownForm("cannot", ("can", "not"), 2, 0),
    KnownForm("du", ("de", "le"), 30, 0),
    KnownForm("des", ("de", "les"), 20, 15),
    KnownForm("i'r", ("i", "'r"), 5, 0),
    KnownForm("o'r", ("o", "'r"), 5, 0),
    KnownForm("wbyt", ("w", "byt"), 2, 0),
    KnownForm("wqal", ("w", "qal"), 2, 0),
]


@pytest.fixture
def split():
    return MultiwordSplitter(KNOWN)


def test_a_form_that_is_always_split_is_split_in_its_own_case(split):
    assert split("Don't", False) == ("Do", "n't")
    assert split("DON'T", False) == ("DO", "N'T")
    assert split("du", False) == ("de", "le")
    assert split("Du", False) == ("De", "le")
    assert split("DU", False) == ("DE", "LE")


def test_a_form_seen_both_ways_goes_by_the_mark(split):
    assert split("des", True) == ("de", "les")
    assert split("des", False) == ("des",)


def test_an_unknown_form_is_split_by_the_longest_rule_where_it_is_marked(split):
    assert split("Shouldn't", True) == ("Should", "n't")
    assert split("Shouldn't", False) == ("Shouldn't",)
    assert split("a'r", True) == ("a", "'r")
    assert split("wktb", True) == ("w", "ktb")
    assert split("xyz", True) == ("xyz",)


def test_a_rule_seen_in_one_form_is_not_used_on_others():
    split = MultiwordSplitter([KnownForm("cannot", ("can", "not"), 9, 0)])
    assert split("xnot", True) == ("xnot",)


def test_the_words_of_a_form_are_its_most_frequent_ones():
    text = "its its its its"
    tokens = [
        TokenSpan(place, place + 3, words)
        for place, words in enumerate([("it", "s"), ("i", "ts"), ("it", "s"), ("its",)])
    ]
    tokens = [TokenSpan(4 * place, 4 * place + 3, token.words) for place, token in enumerate(tokens)]
    assert known_multiword_tokens(count_forms(tokens, text)) == [KnownForm("its", ("it", "s"), 3, 1)]


def test_a_splitter_is_written_and_read_back(split):
    again = MultiwordSplitter.from_list(split.to_list(), "config.json")
    assert again.to_list() == split.to_list() == [[e.form, list(e.words), e.split, e.whole] for e in KNOWN]
    for values in (None, [["du"]], [["du", None, 1, 0]], [["du", ["de"], "x", 0]]):
        with pytest.raises(DataError, match=r"config\.json: multiword_tokens"):
            MultiwordSplitter.from_list(values, "config.json")

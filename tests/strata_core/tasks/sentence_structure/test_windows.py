"""Sentences cut into windows, and put together again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from strata_core.corpus.treebanks.sentence import Argument, Predicate, Sentence
from strata_core.corpus.treebanks.structure_reading import SentenceArrays
from strata_core.tasks.sentence_structure.windows import Limit, cut, joined, joining_relation


def words(count):
    nothing = (None,) * count
    return Sentence(tuple("abcdefgh"[:count]), nothing, nothing, nothing, (True,) * count)


def arrays(*spans):
    unknown = np.full(len(spans), -1, dtype=np.int32)
    return SentenceArrays(
        tokens=np.arange(100, 100 + max(end for _, end in spans), dtype=np.uint32),
        token_spans=np.array(spans, dtype=np.int32),
        upos=unknown,
        heads=unknown,
        relations=unknown,
        rolesets=unknown,
        arguments=np.zeros((0, 3), dtype=np.int32),
        has_roles=False,
    )


def test_a_sentence_within_the_limit_is_its_own_window():
    sentence, whole = words(3), arrays((0, 1), (1, 2), (2, 4))
    for limit in (Limit(3, in_tokens=False), Limit(4, in_tokens=True)):
        ((part, part_arrays),) = cut(sentence, whole, limit)
        assert part is sentence and part_arrays is whole


def test_windows_of_words_have_the_tokens_of_their_words():
    parts = cut(words(5), arrays((0, 1), (1, 4), (4, 5), (5, 6), (6, 9)), Limit(2, in_tokens=False))
    assert [part.forms for part, _ in parts] == [("a", "b"), ("c", "d"), ("e",)]
    assert [each.tokens.tolist() for _, each in parts] == [[100, 101, 102, 103], [104, 105], [106, 107, 108]]
    assert [each.token_spans.tolist() for _, each in parts] == [[[0, 1], [1, 4]], [[0, 1], [1, 2]], [[0, 3]]]


def test_windows_of_tokens_end_before_the_word_that_does_not_fit_and_cut_a_word_that_never_does():
    parts = cut(words(5), arrays((0, 2), (2, 3), (3, 5), (5, 10), (10, 11)), Limit(3, in_tokens=True))
    assert [part.forms for part, _ in parts] == [("a", "b"), ("c",), ("d",), ("e",)]
    assert [each.tokens.tolist() for _, each in parts] == [[100, 101, 102], [103, 104], [105, 106, 107], [110]]
    assert parts[2][1].token_spans.tolist() == [[0, 3]]


def test_roots_of_later_windows_hang_below_the_first_and_roles_move_along():
    first = replace(words(3), upos=("X", "Y", "Z"), heads=(2, 0, 2), relations=("det", "root", "obj"), predicates=())
    give = Predicate(1, "Y", (Argument("ARG0", 2),))
    second = replace(words(2), upos=("V", "N"), heads=(0, 1), relations=("root", "nsubj"), predicates=(give,))
    whole = joined(words(5), [first, second], "parataxis")
    assert whole.upos == ("X", "Y", "Z", "V", "N")
    assert whole.heads == (2, 0, 2, 2, 4)
    assert whole.relations == ("det", "root", "obj", "parataxis", "nsubj")
    assert whole.predicates == (Predicate(4, "Y", (Argument("ARG0", 5),)),)


def test_what_the_windows_lack_the_sentence_lacks():
    whole = joined(words(3), [words(2), words(1)], "dep")
    assert whole == words(3)
    bare_trees = [replace(words(2), heads=(0, 1)), replace(words(1), heads=(0,))]
    assert (joined(words(3), bare_trees, "dep").heads, joined(words(3), bare_trees, "dep").relations) == (
        (0, 1, 1),
        (None, None, None),
    )


def test_windows_are_joined_by_parataxis_where_a_model_knows_it_and_by_dep_elsewhere():
    assert joining_relation(["root", "dep", "parataxis"]) == "parataxis"
    assert joining_relation(["root", "obj"]) == "dep"

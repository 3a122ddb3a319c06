"""Tree checks against their definitions."""

from __future__ import annotations

import itertools
import random

import networkx
import pytest

from strata_core.corpus.treebanks.dependency_tree import bottom_up, crossing_words, subtree_ends, tree_faults
from tests.strata_core.corpus.treebanks.helpers import SHARED, random_tree


def is_tree(heads):
    """A tree with one root, by walking up from every word."""
    if heads.count(0) != 1 or any(head < 0 or head > len(heads) for head in heads):
        return False
    for word in range(1, len(heads) + 1):
        steps = 0
        while word:
            word = heads[word - 1]
            steps += 1
            if steps > len(heads):
                return False
    return True


@pytest.mark.parametrize("n_words", [1, 2, 3, 4])
def test_exactly_the_trees_have_no_fault(n_words):
    for heads in itertools.product(range(-1, n_words + 2), repeat=n_words):
        assert (tree_faults(heads) == []) == is_tree(heads), heads


@pytest.mark.parametrize(
    ("heads", "details"),
    [
        ((0, 1, 5, -2), ["head 5 of 4 words", "head -2"]),
        ((2, 1, 4, 3, 0), ["cycle 1-2", "cycle 3-4"]),
        ((3, 0, 4, 1), ["cycle 1-3-4"]),
        ((0, 0, 3), ["word 3 is its own head", "2 roots"]),
    ],
)
def test_every_fault_is_named(heads, details):
    assert [fault.detail for fault in tree_faults(heads)] == details


def test_words_without_heads_may_hide_the_root_but_no_fault():
    assert tree_faults((2, None, 2)) == []
    assert [fault.kind for fault in tree_faults((2, 1, None))] == ["cycle"]
    assert [fault.kind for fault in tree_faults((0, 0, None))] == ["several-roots"]


def test_a_cycle_of_a_hundred_thousand_words_is_found():
    heads = [*range(2, 100_001), 1]
    heads.append(0)
    assert len(tree_faults(heads)) == 1


def test_crossing_words_are_those_whose_arc_spans_what_their_head_does_not_dominate():
    generator = random.Random(3)
    for _ in range(300):
        heads = random_tree(generator.randint(1, 9), generator)
        graph = networkx.DiGraph((head, word) for word, head in enumerate(heads, 1))
        expected = [
            word
            for word, head in enumerate(heads, 1)
            if not set(range(min(word, head) + 1, max(word, head))) <= networkx.descendants(graph, head)
        ]
        assert crossing_words(heads) == expected


def test_subtree_ends_and_bottom_up_order():
    generator = random.Random(4)
    for _ in range(100):
        heads = random_tree(generator.randint(1, 12), generator)
        graph = networkx.DiGraph((head, word) for word, head in enumerate(heads, 1))
        first, last = subtree_ends(heads)
        order = bottom_up(heads)
        assert sorted(order) == list(range(1, len(heads) + 1))
        for word, head in enumerate(heads, 1):
            below = networkx.descendants(graph, word) | {word}
            assert (first[word], last[word]) == (min(below), max(below))
            assert head == 0 or order.index(word) < order.index(head)


def test_real_treebank_has_as_many_non_projective_sentences_as_its_readme_says():
    path = SHARED / "data/ud/UD_English-EWT/en_ewt-ud-train.conllu"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    non_projective = 0
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        cells = [line.split("\t") for line in block.split("\n") if line and not line.startswith("#")]
        heads = [int(row[6]) for row in cells if row[0].isdigit()]
        non_projective += bool(heads and crossing_words(heads))
    assert non_projective == 288

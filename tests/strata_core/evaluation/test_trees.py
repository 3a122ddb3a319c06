"""The decoder against every tree there is, and against networkx."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest

from strata_core.evaluation.trees import decode_tree


def is_tree_with_one_root(heads):
    graph = networkx.DiGraph((head, word) for word, head in enumerate(heads, 1))
    return list(heads).count(0) == 1 and networkx.is_arborescence(graph)


def total(scores, heads):
    return sum(scores[word, head] for word, head in enumerate(heads))


def best_by_trying_all(scores):
    n_words = len(scores)
    trees = (heads for heads in itertools.product(range(n_words + 1), repeat=n_words) if is_tree_with_one_root(heads))
    return max(total(scores, heads) for heads in trees)


def best_by_networkx(scores):
    """The best arborescence for each choice of the one word that hangs below the root."""
    best = -np.inf
    for root in range(1, len(scores) + 1):
        graph = networkx.DiGraph()
        graph.add_edge(0, root, weight=scores[root - 1, 0])
        for word, head in itertools.permutations(range(1, len(scores) + 1), 2):
            graph.add_edge(head, word, weight=scores[word - 1, head])
        tree = networkx.maximum_spanning_arborescence(graph)
        best = max(best, sum(scores[word - 1, head] for head, word in tree.edges))
    return best


@pytest.mark.parametrize("n_words", [1, 2, 3, 4])
def test_no_tree_is_better(n_words):
    generator = np.random.default_rng(n_words)
    for trial in range(60):
        real = generator.normal(size=(n_words, n_words + 1))
        scores = real if trial % 2 else generator.integers(-2, 3, size=real.shape).astype(float)
        heads = decode_tree(scores)
        assert is_tree_with_one_root(heads)
        assert total(scores, heads) == pytest.approx(best_by_trying_all(scores), abs=1e-9)


@pytest.mark.parametrize("n_words", [7, 12, 20])
def test_an_independent_implementation_finds_no_better_tree(n_words):
    generator = np.random.default_rng(n_words)
    for _ in range(4):
        scores = generator.normal(size=(n_words, n_words + 1))
        heads = decode_tree(scores)
        assert is_tree_with_one_root(heads)
        assert total(scores, heads) == pytest.approx(best_by_networkx(scores), abs=1e-9)


def test_cycles_within_cycles_are_broken_at_the_cheapest_place():
    # 1 and 2 prefer each other, then 3 and that pair, then 4 and that triple; the root is poor everywhere.
    scores = np.full((4, 5), -9.0)
    scores[0, 2] = scores[1, 1] = 10
    scores[2, 1] = scores[0, 3] = 8
    scores[3, 3] = scores[1, 4] = 6
    scores[:, 0] = [-1, -2, -3, -0.5]
    # Below the root: 4 (-0.5), then 2 <- 4 (6), 1 <- 2 (10), 3 <- 1 (8).
    assert decode_tree(scores).tolist() == [2, 4, 1, 0]


def test_the_root_has_one_dependent_however_good_its_arcs_are():
    scores = np.zeros((5, 6))
    scores[:, 0] = [1000, 1000, 1001, 1000, 1000]
    assert np.count_nonzero(decode_tree(scores) == 0) == 1 and decode_tree(scores)[2] == 0


def test_forbidden_arcs_are_never_taken():
    generator = np.random.default_rng(8)
    for _ in range(60):
        scores = generator.normal(size=(4, 5))
        scores[generator.random(scores.shape) < 0.35] = -np.inf
        best = best_by_trying_all(scores)
        if np.isfinite(best):
            assert total(scores, decode_tree(scores)) == pytest.approx(best, abs=1e-9)
        else:
            with pytest.raises(ValueError, match="without a forbidden arc"):
                decode_tree(scores)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(bad):
    scores = np.zeros((3, 4))
    scores[1, 1] = bad
    with pytest.raises(ValueError, match="numbers or -inf"):
        decode_tree(scores)


def test_a_wrong_shape_is_refused_and_no_words_have_no_heads():
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        decode_tree(np.zeros((3, 3)))
    assert decode_tree(np.zeros((0, 1))).tolist() == []


def test_long_sentences_and_single_precision_are_decoded():
    scores = np.random.default_rng(1).normal(size=(160, 161)).astype(np.float32)
    assert is_tree_with_one_root(decode_tree(scores).tolist())


def test_scores_are_left_as_they_were():
    scores = np.random.default_rng(1).normal(size=(6, 7))
    before = scores.copy()
    decode_tree(scores)
    assert np.array_equal(scores, before)

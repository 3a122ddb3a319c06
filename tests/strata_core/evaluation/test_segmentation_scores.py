"""Tokens, sentences and words as the CoNLL 2018 scorer counts them, against examples worked out by hand."""

import pytest

from strata_core.evaluation.segmentation_scores import (
    ScoredWord,
    SegmentationCounts,
    aligned_words,
    count_segmentation,
)


def plain(*spans):
    return [ScoredWord(start, end, f"{start}", False) for start, end in spans]


def multiword(start, end, *forms):
    return [ScoredWord(start, end, form, True) for form in forms]


def test_a_text_cut_alike_is_all_right():
    sentences = [plain((0, 2), (2, 5)), [*plain((5, 6)), *multiword(6, 8, "de", "le")]]
    counts = count_segmentation(sentences, sentences)
    assert counts == SegmentationCounts(4, 4, 4, 2, 2, 2, 5, 5, 5)
    assert counts.metrics() == {"tokens_f1": 1.0, "sentences_f1": 1.0, "words_f1": 1.0}


def test_a_joined_pair_of_tokens_and_of_sentences_costs_both_sides():
    gold = [plain((0, 2), (2, 3)), plain((3, 6), (6, 7))]
    predicted = [plain((0, 2), (2, 6), (6, 7))]
    counts = count_segmentation(gold, predicted)
    assert counts == SegmentationCounts(2, 4, 3, 0, 2, 1, 2, 4, 3)
    assert counts.metrics()["tokens_f1"] == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))
    assert counts.metrics()["sentences_f1"] == 0.0


def test_a_multiword_token_left_whole_is_a_right_token_without_right_words():
    gold = [[*plain((0, 1)), *multiword(1, 3, "de", "le"), *plain((3, 5))]]
    predicted = [plain((0, 1), (1, 3), (3, 5))]
    counts = count_segmentation(gold, predicted)
    assert counts == SegmentationCounts(3, 3, 3, 1, 1, 1, 2, 4, 3)


def test_words_of_multiword_tokens_are_aligned_by_their_forms_without_case():
    gold = multiword(0, 6, "dá", "me", "lo")
    assert aligned_words(gold, multiword(0, 6, "Dá", "lo")) == [(0, 0), (2, 1)]
    assert aligned_words(gold, multiword(0, 6, "lo", "me")) in ([(1, 1)], [(2, 0)])
    assert aligned_words(gold, [ScoredWord(0, 6, "ME", False)]) == [(1, 0)]


def test_overlapping_multiword_tokens_are_one_stretch():
    gold = [*multiword(0, 4, "a", "b"), *plain((4, 6), (6, 8))]
    predicted = [*plain((0, 2)), *multiword(2, 6, "b", "c"), *plain((6, 8))]
    # Characters 0 to 6: gold has a, b, "4"; predicted has "0", b, c. Then both have 6 to 8.
    assert aligned_words(gold, predicted) == [(1, 1), (3, 3)]


def test_counts_of_nothing_have_no_score():
    assert count_segmentation([], []) == SegmentationCounts()
    assert all(value != value for value in SegmentationCounts().metrics().values())
    assert SegmentationCounts.from_list(SegmentationCounts(1, 2, 3).to_list()) == SegmentationCounts(1, 2, 3)

"""Which tokens a word takes, with hand-made and with real offsets."""

from __future__ import annotations

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from strata_core.corpus.treebanks.sentence import detokenise
from strata_core.corpus.treebanks.word_spans import word_token_spans
from tests.strata_core.corpus.treebanks.helpers import MIXED, read_real, read_text


def test_a_space_before_a_word_belongs_to_no_other():
    # "ab cd": tokens "a", "b", " cd".
    spans = word_token_spans([(0, 2), (3, 5)], [(0, 1), (1, 2), (2, 5)], "ab cd")
    assert spans.tolist() == [[0, 2], [2, 3]] and spans.dtype == np.int32


def test_words_share_a_token_that_runs_across_them_and_the_tokens_of_one_multiword_token():
    assert word_token_spans([(0, 2), (2, 3)], [(0, 3)], "go.").tolist() == [[0, 1], [0, 1]]
    assert word_token_spans([(0, 2), (0, 2)], [(0, 1), (1, 2)], "du").tolist() == [[0, 2], [0, 2]]


def test_tokens_of_spaces_alone_belong_to_a_word_only_inside_it():
    # "10 000 x" with each character a token.
    tokens = [(place, place + 1) for place in range(8)]
    assert word_token_spans([(0, 6), (7, 8)], tokens, "10 000 x").tolist() == [[0, 6], [7, 8]]


def test_several_tokens_that_spell_one_character_are_all_taken():
    assert word_token_spans([(0, 1), (1, 2)], [(0, 1), (0, 1), (0, 1), (1, 2)], "€x").tolist() == [[0, 3], [3, 4]]


def test_a_word_that_no_token_shows_has_an_empty_span():
    assert word_token_spans([(0, 1), (2, 3)], [(0, 1)], "a b").tolist() == [[0, 1], [1, 1]]
    assert word_token_spans([(0, 1)], [], "a").tolist() == [[0, 0]]


def byte_level_tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def overlapping(word, tokens, text):
    """Slow and obvious: the tokens with a character of the word that is no space around it."""
    return [
        place
        for place, (start, end) in enumerate(tokens)
        if any(word[0] <= character < word[1] for character in range(start, end)) and text[start:end].strip(" ")
    ]


def test_spans_of_a_real_tokenizer_are_the_tokens_that_overlap_each_word():
    tokenizer = byte_level_tokenizer()
    sentences = read_text(MIXED)[0] + read_real("Sequoia", "dev")[0][:150]
    for sentence in sentences:
        spelt = detokenise(sentence)
        tokens = tokenizer.encode(spelt.text).offsets
        spans = word_token_spans(spelt.word_spans, tokens, spelt.text)
        for word, (first, after) in zip(spelt.word_spans, spans.tolist(), strict=True):
            expected = overlapping(word, tokens, spelt.text)
            assert (first, after) == (expected[0], expected[-1] + 1)

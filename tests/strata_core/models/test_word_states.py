"""States of words: sums of what belongs to a word, and a window that begins as nothing."""

import zlib

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from strata_core.models import initialise
from strata_core.models.word_features import shape_of, word_features
from strata_core.models.word_states import WordStates, pack_words, states_at
from tests.strata_core.models.structured import some_states

EMBEDDING = some_states(9, 4, seed=3)


def make(word_dropout: float = 0.0) -> WordStates:
    module = WordStates(4, 11, word_dropout)
    initialise(module, 2)
    return module.double()


def two_sentences():
    """Shared subwords (a token that two words spell), a word no token shows, and a shorter sentence."""
    tokens = [np.array([3, 5, 5, 8]), np.array([1])]
    spans = [np.array([[0, 1], [0, 3], [3, 3]]), np.array([[0, 1]])]
    features = [np.array([[0, 1, 2, 3], [4, 4, 4, 4], [10, 9, 8, 7]]), np.array([[1, 1, 2, 2]])]
    return pack_words(tokens, spans, features), tokens, spans, features


def test_a_word_is_the_sum_of_its_subwords_and_features_at_first():
    module = make()
    words, tokens, spans, features = two_sentences()
    states = module(words, EMBEDDING)
    assert words.real_BW.tolist() == [[True, True, True], [True, False, False]]
    for row in range(2):
        for word, (start, stop) in enumerate(spans[row].tolist()):
            expected = sum((EMBEDDING[token] for token in tokens[row][start:stop].tolist()), torch.zeros(4))
            expected = expected + sum(module.features.weight[bucket] for bucket in features[row][word].tolist())
            torch.testing.assert_close(states[row, word], expected)
    assert torch.equal(states[1, 1:], torch.zeros(2, 4, dtype=torch.float64))


def test_the_window_sees_one_neighbour_on_each_side_and_no_padding():
    module = make()
    words = two_sentences()[0]
    plain = module(words, EMBEDDING)
    with torch.no_grad():
        module.window.weight.copy_(some_states(4, 12))
    states = module(words, EMBEDDING)
    outside = torch.zeros(4, dtype=torch.float64)
    for row, length in enumerate((3, 1)):
        sentence = [outside, *plain[row, :length], outside]
        for word in range(length):
            seen = torch.cat(sentence[word : word + 3])
            expected = plain[row, word] + F.gelu(module.window.weight @ seen)
            torch.testing.assert_close(states[row, word], expected)
    assert torch.equal(states[1, 1:], torch.zeros(2, 4, dtype=torch.float64))


def test_the_window_learns_although_it_begins_at_zero():
    module = make()
    module(two_sentences()[0], EMBEDDING).sum().backward()
    assert module.window.weight.grad.abs().max() > 0


def test_word_dropout_leaves_whole_words_out_in_training_only():
    module = make(word_dropout=0.5)
    words = two_sentences()[0]
    module.eval()
    whole = module(words, EMBEDDING)
    module.train()
    seen = set()
    for seed in range(40):
        torch.manual_seed(seed)
        states = module(words, EMBEDDING)
        torch.manual_seed(seed)
        assert torch.equal(module(words, EMBEDDING), states)
        left_out = (states == 0).all(dim=-1)
        torch.testing.assert_close(states, whole.masked_fill(left_out[..., None], 0.0))
        seen.add(tuple(left_out[0].tolist()))
    assert len(seen) == 8


def test_a_batch_without_a_single_subword_has_states():
    words = pack_words([np.array([], dtype=np.int64)], [np.array([[0, 0]])], [np.array([[1, 2, 3, 4]])])
    module = make()
    torch.testing.assert_close(module(words, EMBEDDING)[0, 0], module.features.weight[1:5].sum(dim=0))


def test_states_are_taken_where_asked():
    states = some_states(2, 5, 3)
    taken = states_at(states, torch.tensor([[4, 0], [1, 1]]))
    assert torch.equal(taken, torch.stack([states[0, [4, 0]], states[1, [1, 1]]]))


@pytest.mark.parametrize(
    ("form", "shape"),
    [("McDonald-1990", "XxXxx-dd"), ("the", "xx"), ("U.S.", "X.X."), ("ÉCOLE", "XX"), ("!!!!", "!!"), ("", "")],
)
def test_a_shape_keeps_case_digits_and_marks(form, shape):
    assert shape_of(form) == shape


def test_features_are_checksums_of_word_prefix_suffix_and_shape():
    names = ("word running", "prefix run", "suffix ing", "Xxx")
    assert word_features("Running", 1000) == tuple(zlib.crc32(name.encode()) % 1000 for name in names)
    assert word_features("Running", 1000)[:3] == word_features("running", 1000)[:3]

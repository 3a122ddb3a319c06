from collections import Counter

import numpy as np
import pytest
import torch

from strata_core.errors import DataError
from strata_core.suites.formula import parse_formula
from strata_core.suites.minimal_pairs import score_pairs
from strata_core.suites.pairs import Pair
from strata_core.suites.scoring import log_probabilities
from strata_core.suites.syntaxgym import Item, Suite, region_owners, score_suite, sentence_of
from tests.strata_core.inference.causal_models import causal_model


@torch.inference_mode()
def slow(model, tokens):
    """Token by token, from passes of their own."""
    told = []
    for place, token in enumerate(tokens):
        before = torch.tensor([[model.tokenizer.end_of_text_id, *tokens[:place]]])
        told.append(float((model.states(before)[0, -1] @ model.module.output_weight.T).double().log_softmax(0)[token]))
    return told


@pytest.mark.parametrize("memory", [False, True])
def test_log_probabilities_of_a_batch_are_those_of_each_sentence_alone(memory):
    model = causal_model(memory=memory)
    sentences = [model.encode(text) for text in ("the dog sees the cats", "a", "Größe", "the cat hears")]
    for tokens, found in zip(sentences, log_probabilities(model, sentences), strict=True):
        np.testing.assert_allclose(found, slow(model, tokens), atol=1e-4)


def test_pairs_count_one_a_half_or_nothing_by_sum_and_by_mean():
    model = causal_model()
    texts = ("the dog sees", "the dog sees the cats")
    sums = [sum(slow(model, model.encode(text))) for text in texts]
    means = [np.mean(slow(model, model.encode(text))) for text in texts]
    pairs = [Pair("p", "q", *texts, "x:1"), Pair("p", "r", *texts[::-1], "x:2"), Pair("s", "s", "a", "a", "x:3")]
    scores = score_pairs(model, pairs)
    assert scores.by_sum == [float(sums[0] > sums[1]), float(sums[1] > sums[0]), 0.5]
    assert scores.by_mean == [float(means[0] > means[1]), float(means[1] > means[0]), 0.5]
    told = scores.to_json()
    assert (told["accuracy"], told["pairs"], told["ties"]) == (0.5, 3, 1)
    assert told["phenomena"] == {"p": {"accuracy": 0.5, "pairs": 2}, "s": {"accuracy": 0.5, "pairs": 1}}


def test_pairs_with_rare_words_are_left_out_and_counted():
    pairs = [Pair("p", "p", "The dog .", "A dog .", "x:1"), Pair("p", "p", "the cat", "a cat", "x:2")]
    scores = score_pairs(causal_model(), pairs, counts=Counter(the=9, a=5, dog=2, cat=1), min_count=2)
    assert (len(scores.names), scores.left_out) == (1, 1)


def test_a_sentence_that_is_too_long_is_told_by_file_and_line():
    with pytest.raises(DataError, match=r"x:1: \d+ tokens; a small model takes from 1 to 4"):
        score_pairs(causal_model(longest=4), [Pair("p", "p", "a", "the " * 9, "x:1")])


def test_every_token_is_of_the_region_it_stands_in():
    model = causal_model()
    sentence, starts = sentence_of([("1", "the"), ("2", ""), ("3", " dog sees "), ("4", ",")])
    assert (sentence, starts) == ("the dog sees ,", [(0, "1"), (4, "3"), (13, "4")])
    encoding = model.tokenizer.tokenizer.encode(sentence)
    places = [next(p for p in range(*span) if p == span[1] - 1 or sentence[p] != " ") for span in encoding.offsets]
    expected = ["1" if place < 3 else "3" if place < 12 else "4" for place in places]
    assert region_owners(model, sentence, starts) == expected


@pytest.mark.parametrize("sign", ["<", ">"])
def test_a_suite_by_hand(sign):
    model = causal_model()
    conditions = {"x": [("1", "the"), ("2", "dog"), ("3", "sees")], "y": [("1", "the"), ("2", "cats"), ("3", "sees")]}
    formula = parse_formula(f"(2;%x%) {sign} (2;%y%)", where="here")
    score = score_suite(model, Suite("s", (formula,), (Item("1", conditions, "s: item 1"),)))
    sums = {}
    for name, word in (("x", " dog"), ("y", " cats")):
        before, through = model.encode("the"), model.encode("the" + word)
        sums[name] = -sum(slow(model, through)[len(before) :])
    assert score.results == [[sums["x"] < sums["y"] if sign == "<" else sums["x"] > sums["y"]]]
    assert score.accuracy == float(score.results[0][0])

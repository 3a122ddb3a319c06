"""Features of characters: the same wherever a piece stands, different where it differs."""

import numpy as np
import pytest

from strata_core.tasks.sentence_structure.segmentation.character_features import (
    N_FEATURES,
    character_features,
    code_points,
    lower_case,
    white_space,
)


def features(text, buckets=2**20):
    return character_features(code_points(text), buckets)


def test_a_window_has_the_features_of_its_whole_text():
    text = "Il s'agit du chat de M. Dupont.  Xin chào các bạn! 我们去北京。"
    whole = features(text)
    words = text.split(" ")
    assert len(words) > 8
    for start in range(0, len(text), 7):
        # From three chunks before to three after.
        left = len(" ".join(text[:start].split(" ")[-4:]))
        right = len(" ".join(text[start:].split(" ")[:4]))
        window = features(text[start - left : start + right])
        assert np.array_equal(window[left], whole[start]), start


def test_case_shows_in_the_character_and_its_kind_alone():
    one, other = features("the Cat sat"), features("the cat sat")
    assert (one != other).nonzero()[1].tolist().count(0) == 1
    changed = {column for _, column in zip(*(one != other).nonzero(), strict=True)}
    assert changed == {0, 1}


def test_what_of_a_chunk_ends_with_a_character_and_what_follows_it_are_features():
    text = "did didn't won't"
    found = features(text)
    until, rest = 5, 6
    did, didnt, wont = 2, text.index("n't") - 1, text.rindex("n't") - 1
    assert found[did, until] == found[didnt, until] != found[wont, until]
    assert found[didnt, rest] == found[wont, rest] != found[did, rest]
    assert found[didnt + 1, until] != found[wont + 1, until]
    assert found[didnt + 1, rest] == found[wont + 1, rest]


@pytest.mark.parametrize("text", ["", " ", "\n\n ", "x", "\x00\ufeff\ud800", "a" * 1000, "é\u0301"])
def test_any_text_has_features_in_range(text):
    found = features(text, 97)
    assert found.shape == (len(text), N_FEATURES) and found.dtype == np.int32
    assert ((found >= 0) & (found < 97)).all()
    assert len(white_space(code_points(text))) == len(text)


def test_lower_case_keeps_the_number_of_characters():
    assert "".join(map(chr, lower_case(code_points("ÀBİß Σ")).tolist())) == "àbiß σ"


def test_white_space_is_what_isspace_says():
    text = "a b\t\u00a0\u3000\u200b\n\u2029"
    assert white_space(code_points(text)).tolist() == [character.isspace() for character in text]

"""Where no token may end, and where a sentence must."""

import pytest

from strata_core.tasks.sentence_structure.segmentation.character_features import code_points, white_space
from strata_core.tasks.sentence_structure.segmentation.token_boundaries import (
    inside_addresses,
    inside_clusters,
    paragraph_ends,
)


def pieces(text, inside):
    """The text cut wherever a token may end."""
    cut, start = [], 0
    for place, within in enumerate(inside.tolist()):
        if not within:
            cut.append(text[start : place + 1])
            start = place + 1
    return cut


@pytest.mark.parametrize(
    "clusters",
    [
        ["e\u0301", "a", "o\u0302\u0323", "!"],
        ["👩‍👩‍👧", "👍🏽", "❤️", "x"],
        ["🇫🇷", "🇬🇧", "🇩", "x"],
        ["x", "🇫🇷", "🇬"],
        ["각", "\u1100\u1161\u11a8", "가"],
        ["a", " ", "\u0301", "b"],
        ["क\u093f", "1\ufe0f\u20e3"],
    ],
)
def test_a_grapheme_cluster_is_not_cut(clusters):
    text = "".join(clusters)
    assert pieces(text, inside_clusters(code_points(text))) == clusters


def test_plain_text_and_no_text_are_cut_anywhere():
    for text in ("", "a", "plain text", "déjà\r\n"):
        assert not inside_clusters(code_points(text)).any()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("See http://a.org/x?y=1&z=(2), now", "http://a.org/x?y=1&z=(2"),
        ("(www.example.com).", "www.example.com"),
        ("<https://a.b/c>", "https://a.b/c"),
        ("Mail jane.doe+x@mail.example.org.", "jane.doe+x@mail.example.org"),
        ("Contact:...jane@example.org", "jane@example.org"),
        ("见http://a.cn/b。好", "http://a.cn/b"),
    ],
)
def test_an_address_is_not_cut_before_its_end(text, address):
    assert address in pieces(text, inside_addresses(text))


def test_an_at_sign_or_a_colon_alone_is_no_address():
    assert not inside_addresses("me @ home: 10:30, a@b, D.C. today.").any()


def test_a_long_run_that_is_no_address_costs_its_length():
    assert not inside_addresses("a." * 200_000).any()


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("a\n\nb", [0, 3]),
        ("a \n \t\n b ", [0, 7]),
        ("a\r\n\r\nb\r\n", [0, 5]),
        ("a\nb", [2]),
        ("a\u2029b", [0, 2]),
        ("\n\na", [2]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_a_sentence_ends_before_a_blank_line_and_at_the_end_of_the_text(text, ends):
    assert paragraph_ends(text, white_space(code_points(text))).tolist() == ends

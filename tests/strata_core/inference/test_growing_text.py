import pytest

from strata_core.inference.growing_text import GrowingText


class Bytes:
    """A tokenizer whose tokens are the bytes of UTF-8."""

    def decode(self, ids, /):
        return bytes(ids).decode(errors="replace")


def grown(text, stops=()):
    """The pieces of a text that arrives byte by byte, and what it is in the end."""
    growing = GrowingText(Bytes(), b"x", stops)
    pieces = []
    for token in text.encode():
        pieces.append(growing.add(token))
        if growing.stopped:
            break
    pieces.append(growing.finish())
    return pieces, growing.text


@pytest.mark.parametrize("text", ["plain", "Größe", "日本 and 🙂", " leading"])
def test_only_whole_characters_come_out_and_all_of_them(text):
    pieces, final = grown(text)
    assert "".join(pieces) == final == text
    assert not any("\ufffd" in piece for piece in pieces)


def test_a_stop_string_over_several_tokens_ends_the_text_before_it_and_is_never_shown():
    pieces, final = grown("one\n\ntwo", ["\n\n"])
    assert "".join(pieces) == final == "one"


def test_what_only_began_like_a_stop_string_is_shown_after_all():
    pieces, final = grown("a ENx END b EN", ["END"])
    assert "".join(pieces) == final == "a ENx "
    pieces, final = grown("a EN", ["END"])
    assert "".join(pieces) == final == "a EN"


def test_the_first_of_several_stop_strings_counts():
    assert grown("abcdef", ["ef", "cd"])[1] == "ab"


def test_half_a_character_at_the_end_is_a_replacement_character():
    growing = GrowingText(Bytes(), b"")
    assert growing.add(0xC3) == ""
    assert (growing.finish(), growing.text) == ("\ufffd", "\ufffd")

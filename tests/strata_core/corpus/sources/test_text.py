"""Plain text as documents, whole and in parts."""

from itertools import pairwise
from pathlib import Path

import pytest

from strata_core.corpus.sources import text as module
from strata_core.corpus.sources.files import find_files
from strata_core.corpus.sources.records import Document, Skip
from strata_core.corpus.sources.streams import open_stream
from strata_core.corpus.sources.text import TextDocument, TextPart, cut_position, read_text


def pieces(data: bytes, tmp_path: Path) -> list[TextDocument | TextPart]:
    path = tmp_path / "in.txt"
    path.write_bytes(data)
    (file,), _ = find_files([path])
    with open_stream(file) as stream:
        return list(read_text(stream, in_parts=True))


def only(data: bytes) -> Document | Skip:
    (found,) = TextDocument("in.txt", data).documents("text")
    return found


def test_a_file_is_one_document_kept_byte_for_byte() -> None:
    assert only(b"one\r\ntwo\0\n") == Document("one\r\ntwo\0\n", b"one\r\ntwo\0\n")


def test_a_byte_order_mark_is_dropped_at_the_start_alone() -> None:
    assert only("\ufeffa\ufeff".encode()) == Document("a\ufeff", "a\ufeff".encode())


@pytest.mark.parametrize(
    ("data", "reason", "detail"),
    [
        (b"caf\xe9 au lait", "not UTF-8", "not UTF-8 at byte 3 (0xe9)"),
        (b"\xef\xbb\xbfab\xff", "not UTF-8", "not UTF-8 at byte 5 (0xff)"),
        ("wide".encode("utf-16"), "not UTF-8", "looks like UTF-16"),
        (b"", "empty", "the file is empty"),
        (b"\xef\xbb\xbf", "empty", "the file is empty"),
    ],
)
def test_a_file_that_is_no_document_says_why(data: bytes, reason: str, detail: str) -> None:
    found = only(data)
    assert isinstance(found, Skip)
    assert found.reason == reason
    assert detail in found.detail


def test_the_parts_of_a_large_file_are_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 7)
    text = "\ufeffthree  ways,\n and é日本 more\twords\u3000 here   "
    found = pieces(text.encode(), tmp_path)
    assert all(isinstance(part, TextPart) for part in found)
    assert "".join(part.text for part in found if isinstance(part, TextPart)) == text.removeprefix("\ufeff")
    assert [part.last for part in found if isinstance(part, TextPart)] == [False] * (len(found) - 1) + [True]


def test_parts_begin_with_white_space_behind_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 16)
    parts = [part.text for part in pieces(b"word  two\n\nthree, four. " * 20, tmp_path) if isinstance(part, TextPart)]
    assert len(parts) > 10
    for before, after in pairwise(parts):
        assert not before[-1].isspace()
        assert after[0] in " \n"


def test_a_bad_byte_in_a_large_file_is_found_at_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 8)
    last = pieces(b"some words \xc3\xa9 and more \xff words", tmp_path)[-1]
    assert isinstance(last, TextPart)
    assert last.fault is not None
    assert "byte 23 (0xff)" in last.fault.detail


def test_a_character_cut_off_at_the_end_is_not_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 8)
    last = pieces(b"some words and \xc3", tmp_path)[-1]
    assert isinstance(last, TextPart)
    assert last.fault is not None
    assert "byte 15 (0xc3)" in last.fault.detail


@pytest.mark.parametrize(
    ("text", "position"),
    [("one two three", 7), ("one\n\ntwo", 3), ("one  ", 3), ("  one", 0), ("one\ttwo", 0), ("one\t two", 0), ("", 0)],
)
def test_a_cut_lies_between_a_word_and_the_white_space_after_it(text: str, position: int) -> None:
    assert cut_position(text) == position

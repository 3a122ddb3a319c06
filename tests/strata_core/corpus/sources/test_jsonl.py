"""Documents out of JSON Lines."""

from pathlib import Path

import pytest

from strata_core.corpus.sources.files import find_files
from strata_core.corpus.sources.jsonl import JsonLines, read_lines
from strata_core.corpus.sources.records import Document, Skip
from strata_core.corpus.sources.streams import open_stream


def found(data: bytes, tmp_path: Path) -> list[Document | Skip]:
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    (file,), _ = find_files([path])
    with open_stream(file) as stream:
        return [one for lines in read_lines(stream) for one in lines.documents("text")]


def texts(data: bytes, tmp_path: Path) -> list[str]:
    return [one.text for one in found(data, tmp_path) if isinstance(one, Document)]


def test_only_line_feeds_end_a_record(tmp_path: Path) -> None:
    lines = [' {"text": "a\u2028b\u0085c\u2029d"}', '{"text": "e\\u000bf"}']
    assert texts("\n".join(lines).encode(), tmp_path) == ["a\u2028b\u0085c\u2029d", "e\x0bf"]


def test_a_carriage_return_before_the_line_feed_is_no_text(tmp_path: Path) -> None:
    assert texts(b'{"text": "a b"}\r\n{"text": "c\\r\\nd"}\r\n', tmp_path) == ["a b", "c\r\nd"]


def test_a_byte_order_mark_is_dropped_at_the_start_of_the_file_alone(tmp_path: Path) -> None:
    data = '\ufeff{"text": "one"}\n{"text": "\ufefftwo"}\n'.encode()
    assert texts(data, tmp_path) == ["one", "\ufefftwo"]


def test_blank_lines_are_no_records(tmp_path: Path) -> None:
    assert found(b'\n{"text": "a"}\n\r\n  \n', tmp_path) == [Document("a", b"a")]


def test_the_last_line_needs_no_line_end(tmp_path: Path) -> None:
    assert texts(b'{"text": "a"}\n{"text": "b"}', tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b'{"body": 1, "id": 2}', "missing key", "keys seen: body, id"),
        (b"{}", "missing key", "keys seen: none"),
        (b'{"text": null}', "null", "is null"),
        (b'{"text": 7}', "not a string", "a number"),
        (b'{"text": true}', "not a string", "a boolean"),
        (b'{"text": ["a"]}', "not a string", "an array"),
        (b'{"text": {"a": 1}}', "not a string", "an object"),
        (b'"text"', "not an object", "a string"),
        (b'["text"]', "not an object", "an array"),
        (b"42", "not an object", "a number"),
        (b"null", "not an object", "null"),
        (b'{"text": "cut', "bad JSON", "column"),
        (b'{"text": "tab\there"}', "bad JSON", "control character"),
        (b"[" * 100_000, "bad JSON", "nested too deeply"),
        (b'{"text": "a", "text": "b"}', "repeated key", "2 times"),
        (b'{"text": "caf\xe9"}', "not UTF-8", "byte 13 of the line (0xe9)"),
        (b'{"text": "x\\ud800y"}', "lone surrogate", "\\ud800"),
        (b'{"text": ""}', "empty", "empty"),
    ],
)
def test_a_record_without_a_document_says_why(tmp_path: Path, line: bytes, reason: str, detail: str) -> None:
    first, second = found(b'{"text": "good"}\n' + line + b"\n", tmp_path)
    assert first == Document("good", b"good")
    assert isinstance(second, Skip)
    assert second.reason == reason
    assert detail in second.detail.replace("Invalid control", "control")
    assert second.place == f"{tmp_path / 'in.jsonl'}:2"


def test_a_key_may_repeat_inside_another_value(tmp_path: Path) -> None:
    assert texts(b'{"meta": {"text": "no"}, "text": "yes"}', tmp_path) == ["yes"]


def test_numbers_of_any_length_stand_beside_the_text(tmp_path: Path) -> None:
    assert texts(b'{"n": ' + b"1" * 10_000 + b', "text": "yes"}', tmp_path) == ["yes"]


def test_line_numbers_go_on_over_chunks(tmp_path: Path) -> None:
    long = b'{"text": "' + b"x" * 300_000 + b'"}\n'
    last = found(long * 9 + b"{}\n", tmp_path)[-1]
    assert isinstance(last, Skip)
    assert last.line == 10


def test_lines_know_their_size() -> None:
    assert JsonLines("f", 1, [b"{}\n", b"{}"]).size_bytes == 5

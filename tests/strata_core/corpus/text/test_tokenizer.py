"""Learning tokenizers and checking given ones."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from strata_core.corpus.text.tokenizer import check_tokenizer, read_tokenizer, train_tokenizer
from strata_core.errors import DataError, UsageError
from tests.strata_core.corpus.helpers import byte_tokenizer_json, special_token, word_tokenizer_json

TEXTS = ["the cat sat on the mat", "the hat", "<|endoftext|> is text", "naïve – café 日本"] * 20


def checked(content: dict) -> object:
    return check_tokenizer(json.dumps(content).encode(), shown="t.json")


def test_a_learned_tokenizer_gives_every_text_back() -> None:
    tokenizer = check_tokenizer(train_tokenizer(TEXTS, 300), shown="t.json")
    assert tokenizer.is_byte_level
    for text in [*TEXTS[:4], "unseen \U0001f40e\0\r\n \ufeff", "<|endoftext|>", "  "]:
        ids = tokenizer.tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.tokenizer.decode(ids, skip_special_tokens=False) == text
        assert tokenizer.end_of_text_id not in ids


def test_a_learned_tokenizer_has_the_size_asked_for_where_the_text_allows_it() -> None:
    assert check_tokenizer(train_tokenizer(TEXTS, 270), shown="t").vocab_size == 270
    assert check_tokenizer(train_tokenizer(["ab"], 1000), shown="t").vocab_size == 258


def test_the_first_merge_is_the_most_frequent_pair() -> None:
    content = json.loads(train_tokenizer(["xyxyxyxy ab"], 258))
    assert content["model"]["merges"] == [["x", "y"]]


def test_the_same_text_gives_the_same_tokenizer_whatever_the_threads() -> None:
    program = (
        "import hashlib, sys; from strata_core.corpus.text.tokenizer import train_tokenizer;"
        "from strata_core.corpus.sources.samples import sample_documents;"
        "print(hashlib.sha256(train_tokenizer(sample_documents('python-topics')[:20], 600)).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": threads, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "5")
    }
    assert len(digests) == 1


@pytest.mark.parametrize("size", [-1, 0, 256, 2**31 + 1])
def test_a_vocabulary_that_cannot_be_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match=str(size)):
        train_tokenizer(TEXTS, size)


def test_sizes_and_ids_of_a_given_tokenizer_are_taken_from_it() -> None:
    tokenizer = check_tokenizer(json.dumps(word_tokenizer_json(70_000)).encode(), shown="t.json")
    assert (tokenizer.vocab_size, tokenizer.end_of_text_id, tokenizer.is_byte_level) == (70_001, 70_000, False)


def test_truncation_and_padding_of_a_given_tokenizer_are_not_applied() -> None:
    content = byte_tokenizer_json()
    content["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    tokenizer = check_tokenizer(json.dumps(content).encode(), shown="t.json")
    assert tokenizer.tokenizer.encode("abcdef").ids == list(b"abcdef")


def _same_id(content: dict) -> None:
    content["model"]["vocab"]["!"] = 34


def _end_shares_an_id(content: dict) -> None:
    content["added_tokens"][0]["id"] = 65


def _two_ids(content: dict) -> None:
    content["model"]["vocab"]["<|endoftext|>"] = 257


def _no_end(content: dict) -> None:
    content["added_tokens"] = [special_token("</s>", 256)]


def _ordinary_end(content: dict) -> None:
    content["added_tokens"][0]["special"] = False


def _dropout(content: dict) -> None:
    content["model"]["dropout"] = 0.1


def _negative_id(content: dict) -> None:
    content["model"]["vocab"]["!"] = -1


def _unknown_model(content: dict) -> None:
    content["model"]["type"] = "Quantum"


def _no_model(content: dict) -> None:
    del content["model"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_same_id, "have the same id, 34"),
        (_end_shares_an_id, "have the same id, 65"),
        (_two_ids, "has two ids"),
        (_no_end, "is not in it"),
        (_ordinary_end, "is an ordinary token"),
        (_dropout, "dropout"),
        (_negative_id, "-1"),
        (_unknown_model, "does not take it"),
        (_no_model, "it has no model"),
    ],
)
def test_a_tokenizer_that_cannot_be_relied_on_is_refused(spoil: Callable[[dict], None], message: str) -> None:
    content = byte_tokenizer_json()
    spoil(content)
    with pytest.raises(DataError, match=message) as raised:
        checked(content)
    assert "t.json" in raised.value.message


def test_a_token_written_twice_is_refused() -> None:
    text = json.dumps(byte_tokenizer_json()).replace('"!": 33', '"!": 33, "!": 33')
    with pytest.raises(DataError, match="twice"):
        check_tokenizer(text.encode(), shown="t.json")


def test_an_end_of_text_that_ordinary_text_reaches_is_refused() -> None:
    content = word_tokenizer_json(5)
    content["model"]["vocab"]["<|endoftext|>"] = 5
    with pytest.raises(DataError, match="like the end of a document"):
        checked(content)


def test_a_tokenizer_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_tokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe{", b"[]"])
def test_a_file_that_is_no_tokenizer_is_bad_data(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(data)
    with pytest.raises(DataError, match=r"tokenizer\.json"):
        read_tokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("normalizer", {"type": "NFC"}),
        ("pre_tokenizer", {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}),
        ("pre_tokenizer", {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}),
        ("decoder", None),
        ("added_tokens", [special_token("<|endoftext|>", 256), {**special_token("  ", 257), "special": False}]),
    ],
)
def test_what_may_change_or_join_text_is_not_taken_for_byte_level(part: str, value: object) -> None:
    content = byte_tokenizer_json()
    assert checked(content).is_byte_level  # type: ignore[attr-defined]
    content[part] = value
    assert not checked(content).is_byte_level  # type: ignore[attr-defined]

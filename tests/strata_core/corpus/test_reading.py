"""A corpus directory read back."""

import json
from pathlib import Path

import numpy as np
import pytest

from strata_core.corpus.preparing.preparation import PreparationSettings, prepare_corpus
from strata_core.corpus.reading import Corpus, open_corpus
from strata_core.errors import DataError, UsageError
from strata_core.manifest import Manifest
from tests.strata_core.corpus.helpers import byte_tokenizer_json, write_jsonl

TEXTS = ["one", "two words", "", "drei – é", "x" * 40, "last"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bytes.json").write_text(json.dumps(byte_tokenizer_json()))
    settings = PreparationSettings(tokenizer=tmp_path / "bytes.json", val_fraction=0, shard_tokens=12, workers=1)
    prepare_corpus([write_jsonl(tmp_path / "in.jsonl", TEXTS)], tmp_path / "corpus", settings)
    return tmp_path / "corpus"


@pytest.fixture
def corpus(folder: Path) -> Corpus:
    return open_corpus(folder)


def stream() -> list[int]:
    """The tokens as they have to be: bytes, and 256 after each document that is not empty."""
    return [number for text in TEXTS if text for number in (*text.encode(), 256)]


def test_facts_of_a_corpus(corpus: Corpus, folder: Path) -> None:
    train = corpus.split("train")
    assert (corpus.vocab_size, corpus.end_of_text_id) == (257, 256)
    assert (train.n_tokens, train.n_documents) == (len(stream()), 5)
    assert train.n_bytes == sum(len(text.encode()) for text in TEXTS)
    assert corpus.digest == Manifest.read(folder).digest
    assert corpus.tokenizer_path == folder / "tokenizer.json"
    # 4 + 10, 12, 41 and 5 tokens: a shard is closed at 12 or more.
    assert [shard.tokens for shard in corpus.info.splits["train"].shards] == [14, 12, 41, 5]
    assert corpus.info.skipped == {"empty": 1}
    assert corpus.split("val").n_tokens == 0


def test_every_span_of_tokens_is_that_of_the_whole_stream(corpus: Corpus) -> None:
    train, wanted = corpus.split("train"), stream()
    for start in range(len(wanted) + 1):
        for stop in range(start, len(wanted) + 1):
            found = train.tokens(start, stop)
            assert found.dtype == np.int64
            assert found.tolist() == wanted[start:stop]


def test_positions_outside_the_split_are_an_index_error(corpus: Corpus) -> None:
    train = corpus.split("train")
    for start, stop in ((-1, 3), (5, 4), (0, train.n_tokens + 1)):
        with pytest.raises(IndexError):
            train.tokens(start, stop)
    with pytest.raises(IndexError):
        train.document(5)


def test_documents_decode_to_their_texts(corpus: Corpus) -> None:
    decode = corpus.decoder()
    train = corpus.split("train")
    assert [decode(train.document(index).tolist()) for index in range(5)] == [text for text in TEXTS if text]


def test_an_empty_split_gives_empty_arrays(corpus: Corpus) -> None:
    assert corpus.split("val").tokens(0, 0).tolist() == []


def test_an_id_outside_the_vocabulary_is_named_with_shard_offset_and_id(folder: Path) -> None:
    shard = folder / "train-00001.bin"
    data = np.fromfile(shard, dtype="<u2")
    data[3] = 300
    data.tofile(shard)
    train = open_corpus(folder).split("train")
    first = train._shards[0].tokens
    with pytest.raises(DataError) as raised:
        train.tokens(first + 1, first + 6)
    assert "train-00001.bin" in raised.value.message
    assert "offset 3 is 300" in raised.value.message
    assert train.tokens(0, first + 3).size == first + 3


def test_document_offsets_that_make_no_sense_are_named(folder: Path) -> None:
    (folder / "train-00000.idx").write_bytes(np.array([0, 9999, 14], dtype="<u8").tobytes())
    with pytest.raises(DataError, match=r"train-00000\.idx"):
        open_corpus(folder).split("train").document(0)


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such corpus"):
        open_corpus(tmp_path / "absent")


def test_a_folder_that_is_no_corpus_is_bad_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a corpus"):
        open_corpus(tmp_path)


@pytest.mark.parametrize("name", ["train-00000.bin", "train-00001.idx"])
def test_a_file_of_another_size_or_gone_is_named(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1])
    with pytest.raises(DataError, match=name):
        open_corpus(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=name):
        open_corpus(folder)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format_version", 99, "format_version is 99"),
        ("kind", "images", "kind is 'images'"),
        ("dtype", "float16", "dtype is 'float16'"),
        ("vocab_size", "257", "vocab_size is '257'"),
        ("vocab_size", True, "vocab_size is True"),
        ("tokens", 1, "sums"),
        ("splits", {}, "train"),
        ("sources", [1], "sources"),
    ],
)
def test_a_corpus_json_that_cannot_be_used_says_what_is_wrong(
    folder: Path, key: str, value: object, message: str
) -> None:
    path = folder / "corpus.json"
    content = json.loads(path.read_text())
    if key == "tokens":
        content["splits"]["train"]["tokens"] = value
    else:
        content[key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        open_corpus(folder)


def test_what_later_formats_add_is_passed_over(folder: Path) -> None:
    path = folder / "corpus.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "labels": {"upos": ["NOUN"]}}))
    assert open_corpus(folder).vocab_size == 257

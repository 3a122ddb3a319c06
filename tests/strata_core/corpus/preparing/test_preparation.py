"""Corpora made from text: contents, counts, splits, and what may not change the result."""

import gzip
import hashlib
import importlib.util
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard

from strata_core.corpus.preparing import preparation
from strata_core.corpus.preparing.preparation import PreparationSettings, prepare_corpus, prepare_sample
from strata_core.corpus.sources import jsonl as jsonl_source
from strata_core.corpus.sources import text as text_source
from strata_core.corpus.sources.samples import sample_documents
from strata_core.corpus.text import encoding
from strata_core.corpus.text.encoders import WordMemoryEncoder
from strata_core.errors import DataError, PlaceTakenError, StorageError, UsageError
from strata_core.manifest import Manifest
from strata_core.observer import Observer
from tests.strata_core.corpus.helpers import (
    byte_tokenizer_json,
    documents_of,
    folder_bytes,
    shard_ids,
    word_tokenizer_json,
    write_jsonl,
)

needs_gigatoken = pytest.mark.skipif(
    importlib.util.find_spec("gigatoken") is None, reason="gigatoken (the extra `fast`) is not installed"
)
TEXTS = [f"Document {number}: the ferry – naïve café – arrives\r\nat {number * 7}." for number in range(200)]
SMALL = PreparationSettings(vocab_size=400, val_fraction=0.2, shard_tokens=500, workers=1, backend="tokenizers")


class Heard(Observer):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.warnings: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def warning(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def byte_settings(tmp_path: Path) -> PreparationSettings:
    path = tmp_path / "bytes.json"
    path.write_text(json.dumps(byte_tokenizer_json()))
    return PreparationSettings(tokenizer=path, val_fraction=0, workers=1)


def held_out(text: str, fraction: float) -> bool:
    """The rule as it is documented: BLAKE2b-64 of the UTF-8 as a fraction of its range."""
    return int(hashlib.blake2b(text.encode(), digest_size=8).hexdigest(), 16) / 2**64 < fraction


def test_every_document_comes_back_in_its_split_and_in_order(tmp_path: Path) -> None:
    texts = ["a", *TEXTS, "spelled <|endoftext|> inside", " \n ", "\ufeffmark", "nul \0 byte"]
    prepared = prepare_corpus([write_jsonl(tmp_path / "in.jsonl", texts)], tmp_path / "out", SMALL)
    assert documents_of(tmp_path / "out") == {
        "train": [text for text in texts if not held_out(text, 0.2)],
        "val": [text for text in texts if held_out(text, 0.2)],
    }
    assert prepared.info.documents == len(texts)
    assert prepared.info.bytes == sum(len(text.encode()) for text in texts)
    assert prepared.info.literal_special_tokens == 1
    assert len(prepared.info.splits["train"].shards) > 3


def test_the_split_of_a_document_does_not_depend_on_its_place(tmp_path: Path) -> None:
    prepare_corpus([write_jsonl(tmp_path / "a.jsonl", TEXTS)], tmp_path / "a", SMALL)
    prepare_corpus([write_jsonl(tmp_path / "b.jsonl", TEXTS[::-1])], tmp_path / "b", SMALL)
    one, other = documents_of(tmp_path / "a"), documents_of(tmp_path / "b")
    assert sorted(one["val"]) == sorted(other["val"])
    assert one["train"] == other["train"][::-1]


def test_the_manifest_lists_every_file_of_the_corpus(tmp_path: Path) -> None:
    prepared = prepare_corpus([write_jsonl(tmp_path / "in.jsonl", TEXTS)], tmp_path / "out", SMALL)
    manifest = Manifest.read(tmp_path / "out")
    assert manifest.describes == "corpus"
    assert manifest.digest == prepared.digest
    found = folder_bytes(tmp_path / "out")
    del found["manifest.json"]
    wanted = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in found.items()}
    assert {entry.path: (entry.size, entry.sha256) for entry in manifest.files} == wanted


@pytest.mark.parametrize(
    "change",
    [
        {"workers": 4},
        pytest.param({"backend": "fast"}, marks=needs_gigatoken),
        pytest.param({"backend": "auto", "workers": 2}, marks=needs_gigatoken),
    ],
    ids=["four workers", "fast backend", "both"],
)
def test_workers_and_backend_do_not_change_a_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict
) -> None:
    monkeypatch.setattr(preparation, "_BYTES_FOR_A_WORKER", 1)
    monkeypatch.setattr(preparation, "BATCH_BYTES", 1000)
    monkeypatch.setattr(jsonl_source, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(text_source, "PART_BYTES", 3000)
    (tmp_path / "long.txt").write_text("\n\n".join(TEXTS))
    inputs = [write_jsonl(tmp_path / "in.jsonl", TEXTS), tmp_path / "long.txt"]
    prepare_corpus(inputs, tmp_path / "plain", SMALL)
    prepare_corpus(inputs, tmp_path / "changed", replace(SMALL, **change))
    assert folder_bytes(tmp_path / "plain") == folder_bytes(tmp_path / "changed")


def test_where_the_input_and_the_corpus_lie_does_not_change_a_byte(tmp_path: Path) -> None:
    for place in ("one", "two [bold] %s"):
        (tmp_path / place / "in" / "sub").mkdir(parents=True)
        write_jsonl(tmp_path / place / "in" / "sub" / "a.jsonl", TEXTS)
        (tmp_path / place / "in" / "b.txt").write_text("some text")
        prepare_corpus([tmp_path / place / "in"], tmp_path / place / "out", SMALL)
    assert folder_bytes(tmp_path / "one" / "out") == folder_bytes(tmp_path / "two [bold] %s" / "out")


def test_compressed_input_gives_the_documents_of_the_plain_one(tmp_path: Path) -> None:
    plain = write_jsonl(tmp_path / "a.jsonl", TEXTS).read_bytes()
    half = plain.index(b"\n", len(plain) // 2) + 1
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(plain[:half]) + gzip.compress(plain[half:]))
    compress = zstandard.ZstdCompressor().compress
    (tmp_path / "a.jsonl.zst").write_bytes(compress(plain[:half]) + compress(plain[half:]))
    for name in ("a.jsonl", "a.jsonl.gz", "a.jsonl.zst"):
        prepare_corpus([tmp_path / name], tmp_path / f"{name}.out", SMALL)
        assert documents_of(tmp_path / f"{name}.out") == documents_of(tmp_path / "a.jsonl.out")


def test_a_document_in_parts_is_as_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, byte_settings: PreparationSettings
) -> None:
    (tmp_path / "a.txt").write_text("\n".join(TEXTS), newline="")
    (tmp_path / "b.txt").write_text("short")
    inputs = [tmp_path / "a.txt", tmp_path / "b.txt"]
    prepare_corpus(inputs, tmp_path / "whole", byte_settings)
    monkeypatch.setattr(text_source, "PART_BYTES", 100)
    prepare_corpus(inputs, tmp_path / "parts", byte_settings)
    assert folder_bytes(tmp_path / "whole") == folder_bytes(tmp_path / "parts")
    assert documents_of(tmp_path / "parts")["train"] == ["\n".join(TEXTS), "short"]


def test_a_large_file_that_turns_bad_is_skipped_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, byte_settings: PreparationSettings
) -> None:
    monkeypatch.setattr(text_source, "PART_BYTES", 100)
    (tmp_path / "bad.txt").write_bytes(" ".join(TEXTS).encode() + b"\xff")
    (tmp_path / "good.txt").write_text("good")
    inputs = [tmp_path / "bad.txt", tmp_path / "good.txt"]
    with pytest.raises(DataError, match=r"bad\.txt: not UTF-8 at byte"):
        prepare_corpus(inputs, tmp_path / "out", byte_settings)
    assert not (tmp_path / "out").exists()
    prepared = prepare_corpus(inputs, tmp_path / "out", replace(byte_settings, on_error="skip"))
    assert documents_of(tmp_path / "out") == {"train": ["good"], "val": []}
    assert prepared.info.skipped == {"not UTF-8": 1}


def test_skipped_records_are_counted_listed_and_told(tmp_path: Path, byte_settings: PreparationSettings) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "a"}\n{"text": ""}\n{"body": 1}\n{"text": "b"}\nnothing\n')
    heard = Heard()
    settings = replace(byte_settings, on_error="skip")
    prepared = prepare_corpus([tmp_path / "in.jsonl"], tmp_path / "out", settings, observer=heard)
    assert prepared.info.skipped == {"bad JSON": 1, "empty": 1, "missing key": 1}
    listed = [json.loads(line) for line in (tmp_path / "out" / "skipped.jsonl").read_text().splitlines()]
    assert [(one["source"], one["line"], one["reason"]) for one in listed] == [
        ("in.jsonl", 2, "empty"),
        ("in.jsonl", 3, "missing key"),
        ("in.jsonl", 5, "bad JSON"),
    ]
    assert any("in.jsonl:3" in warning for warning in heard.warnings)
    assert "skipped.jsonl" in [entry.path for entry in Manifest.read(tmp_path / "out").files]


def test_a_bad_record_stops_the_work_with_its_place(tmp_path: Path, byte_settings: PreparationSettings) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "a"}\n{"body": 1}\n')
    with pytest.raises(DataError, match=r"in\.jsonl:2: key 'text' absent \(keys seen: body\)"):
        prepare_corpus([tmp_path / "in.jsonl"], tmp_path / "out", byte_settings)
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []


def test_the_text_key_can_be_another(tmp_path: Path, byte_settings: PreparationSettings) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"body": "a", "text": 1}\n')
    prepare_corpus([tmp_path / "in.jsonl"], tmp_path / "out", replace(byte_settings, text_key="body"))
    assert documents_of(tmp_path / "out")["train"] == ["a"]


@pytest.mark.parametrize(
    ("size", "ids", "dtype"),
    [(70_000, [69_999, 65_536, 65_535, 1, 70_000], "uint32"), (65_535, [65_534, 1, 65_535], "uint16")],
)
def test_ids_are_stored_in_a_type_that_holds_the_largest(tmp_path: Path, size: int, ids: list[int], dtype: str) -> None:
    (tmp_path / "words.json").write_text(json.dumps(word_tokenizer_json(size)))
    (tmp_path / "in.txt").write_text(" ".join(f"w{number}" for number in ids[:-1]))
    settings = PreparationSettings(tokenizer=tmp_path / "words.json", val_fraction=0, workers=1)
    prepared = prepare_corpus([tmp_path / "in.txt"], tmp_path / "out", settings)
    assert prepared.info.dtype == dtype
    assert shard_ids(tmp_path / "out", "train-00000") == ids


def test_documents_that_a_tokenizer_does_not_give_back_are_counted_and_told(tmp_path: Path) -> None:
    (tmp_path / "words.json").write_text(json.dumps(word_tokenizer_json(10)))
    heard = Heard()
    settings = PreparationSettings(tokenizer=tmp_path / "words.json", val_fraction=0, workers=1)
    source = write_jsonl(tmp_path / "in.jsonl", ["w1 w2", "w3\nw4", "unknown"])
    prepared = prepare_corpus([source], tmp_path / "out", settings, observer=heard)
    assert prepared.info.lossy_documents == 2
    assert any("2 of 3 documents" in warning and "w3" in warning for warning in heard.warnings)


def test_nothing_to_keep_is_bad_data(tmp_path: Path, byte_settings: PreparationSettings) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", ["", ""])
    with pytest.raises(DataError, match=r"no documents.*2 empty"):
        prepare_corpus([source], tmp_path / "out", byte_settings)
    assert not (tmp_path / "out").exists()


def test_no_document_for_training_names_the_remedy(tmp_path: Path, byte_settings: PreparationSettings) -> None:
    text = next(text for text in TEXTS if held_out(text, 0.2))
    settings = replace(byte_settings, val_fraction=0.2)
    with pytest.raises(DataError, match="all 1 documents") as raised:
        prepare_corpus([write_jsonl(tmp_path / "in.jsonl", [text])], tmp_path / "out", settings)
    assert "--val-fraction" in (raised.value.hint or "")


def test_a_place_that_is_taken_is_left_as_it_is(tmp_path: Path, byte_settings: PreparationSettings) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(PlaceTakenError):
        prepare_corpus([write_jsonl(tmp_path / "in.jsonl", ["a"])], tmp_path / "out", byte_settings)
    assert folder_bytes(tmp_path / "out") == {"mine": b"x"}


@pytest.mark.parametrize(
    "change",
    [
        {"val_fraction": 1.0},
        {"val_fraction": -0.1},
        {"val_fraction": float("nan")},
        {"shard_tokens": 0},
        {"workers": 0},
        {"vocab_size": 256},
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_made(tmp_path: Path, change: dict) -> None:
    with pytest.raises(UsageError):
        prepare_corpus([write_jsonl(tmp_path / "in.jsonl", ["a"])], tmp_path / "out", replace(SMALL, **change))
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_standard_input_is_text_or_json_lines(tmp_path: Path, byte_settings: PreparationSettings) -> None:
    (tmp_path / "pipe").write_bytes(b'{"text": "a"}\n')
    for format, wanted in (("auto", '{"text": "a"}\n'), ("jsonl", "a")):
        with open(tmp_path / "pipe", "rb") as pipe:
            settings = replace(byte_settings, format=format)
            prepared = prepare_corpus(["-"], tmp_path / format, settings, standard_input=pipe)
        assert documents_of(tmp_path / format)["train"] == [wanted]
        assert [source.name for source in prepared.info.sources] == ["-"]


def test_standard_input_serves_the_tokenizer_and_the_shards(tmp_path: Path) -> None:
    data = gzip.compress(write_jsonl(tmp_path / "in.jsonl", TEXTS).read_bytes())
    (tmp_path / "pipe").write_bytes(data)
    with open(tmp_path / "pipe", "rb") as pipe:
        prepare_corpus(["-"], tmp_path / "out", replace(SMALL, format="jsonl"), standard_input=pipe)
    found = documents_of(tmp_path / "out")
    assert sorted(found["train"] + found["val"]) == sorted(TEXTS)


def test_an_encoder_that_disagrees_is_replaced_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(WordMemoryEncoder):
        def encode(self, texts):
            ids, lengths = super().encode(texts)
            return np.where(ids == ids.max(), 0, ids), lengths

    source = write_jsonl(tmp_path / "in.jsonl", TEXTS)
    prepare_corpus([source], tmp_path / "right", SMALL)
    monkeypatch.setattr(encoding, "WordMemoryEncoder", Wrong)
    heard = Heard()
    prepared = prepare_corpus([source], tmp_path / "wrong", SMALL, observer=heard)
    assert folder_bytes(tmp_path / "wrong") == folder_bytes(tmp_path / "right")
    assert prepared.backend == "tokenizers"
    assert len([warning for warning in heard.warnings if "differ" in warning]) == 1


def test_a_disagreement_late_in_the_input_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class WrongLater(WordMemoryEncoder):
        def encode(self, texts):
            ids, lengths = super().encode(texts)
            return (ids[:-1], lengths - (np.arange(len(lengths)) == 0)) if "late" in texts[0] else (ids, lengths)

    monkeypatch.setattr(preparation, "BATCH_BYTES", 2000)
    monkeypatch.setattr(jsonl_source, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(encoding, "WordMemoryEncoder", WrongLater)
    heard = Heard()
    texts = TEXTS + [f"late {text}" for text in TEXTS]
    prepare_corpus([write_jsonl(tmp_path / "in.jsonl", texts)], tmp_path / "out", SMALL, observer=heard)
    found = documents_of(tmp_path / "out")
    assert sorted(found["train"] + found["val"]) == sorted(texts)
    assert any("differ" in warning for warning in heard.warnings)


@needs_gigatoken
def test_a_tokenizer_that_the_fast_backend_does_not_take_falls_back_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "words.json").write_text(json.dumps(word_tokenizer_json(10)))
    (tmp_path / "in.txt").write_text("w1 w2")
    heard = Heard()
    settings = PreparationSettings(tokenizer=tmp_path / "words.json", val_fraction=0, workers=1, backend="fast")
    prepared = prepare_corpus([tmp_path / "in.txt"], tmp_path / "out", settings, observer=heard)
    assert prepared.backend == "tokenizers"
    assert [warning for warning in heard.warnings if "gigatoken" in warning]
    assert shard_ids(tmp_path / "out", "train-00000") == [1, 2, 10]


def test_the_fast_backend_has_to_be_installed_to_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="not installed"):
        prepare_corpus([write_jsonl(tmp_path / "in.jsonl", ["a"])], tmp_path / "o", replace(SMALL, backend="fast"))


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource
    import signal

    source = write_jsonl(tmp_path / "in.jsonl", [f"{number} " * 100 for number in range(400)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
    try:
        with pytest.raises(StorageError, match="train-00000"):
            prepare_corpus([source], tmp_path / "out", replace(SMALL, shard_tokens=1 << 20, val_fraction=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_the_tokenizer_is_learned_from_a_bounded_part_spread_over_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "TRAINING_BYTES", 4000)
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(100):
        (folder / f"{number:03d}.txt").write_text(f"{'common ' * 20}{'zq' * 30 if number >= 90 else ''}")
    prepared = prepare_corpus([folder], tmp_path / "out", SMALL)
    assert 3500 < prepared.info.tokenizer.training_bytes < 4500
    tokens = json.loads((tmp_path / "out" / "tokenizer.json").read_text())["model"]["vocab"]
    assert "zqzq" in tokens


def test_a_sample_has_its_documents(tmp_path: Path) -> None:
    prepared = prepare_sample("python-topics", tmp_path / "out", replace(SMALL, vocab_size=2000))
    texts = sample_documents("python-topics")
    assert documents_of(tmp_path / "out")["train"] == [text for text in texts if not held_out(text, 0.2)]
    assert prepared.info.documents == len(texts) > 50
    assert [source.name for source in prepared.info.sources] == ["python-topics"]


def test_a_sample_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sample 'nothing'"):
        prepare_sample("nothing", tmp_path / "out")


def test_a_vocabulary_that_stays_smaller_than_asked_for_is_warned_about(tmp_path: Path) -> None:
    heard = Heard()
    (tmp_path / "a.txt").write_text("the dog barks\n")
    prepare_corpus([tmp_path / "a.txt"], tmp_path / "out", PreparationSettings(val_fraction=0), observer=heard)
    (warning,) = heard.warnings
    assert "tokens only, not the 8192 asked for" in warning and "--vocab-size" in warning
    assert heard.notices == ["understood 1 file as text: a.txt"]


def test_a_text_that_is_nearly_triples_is_read_as_text_and_warned_of(tmp_path: Path) -> None:
    heard = Heard()
    (tmp_path / "a.txt").write_text("ann\tknows\tbob\n" * 9 + "two\tcolumns\n")
    prepare_corpus([tmp_path / "a.txt"], tmp_path / "out", PreparationSettings(val_fraction=0), observer=heard)
    said = "a.txt: 9 of its first 10 lines have three columns, as triples have, and line 10 has 2 columns: read as text"
    assert any(said in warning for warning in heard.warnings)


def test_triples_in_folders_among_text_are_warned_of_and_refused_where_there_is_nothing_else(tmp_path: Path) -> None:
    heard = Heard()
    for folder in ("umls", "nations"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "train.txt").write_text("ann\tknows\tbob\n")
    with pytest.raises(UsageError, match="2 files of triples, not in one folder"):
        prepare_corpus([tmp_path / "in"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "in" / "text.txt").write_text("the dog barks\n")
    prepare_corpus([tmp_path / "in"], tmp_path / "out", PreparationSettings(val_fraction=0), observer=heard)
    assert any("three columns in each line" in warning for warning in heard.warnings)
    prepare_corpus([tmp_path / "in" / "umls"], tmp_path / "said", PreparationSettings(format="text", val_fraction=0))


def test_triples_through_a_pipe_are_refused_unless_text_is_said(tmp_path: Path) -> None:
    piped = b"ann\tknows\tbob\n"
    with pytest.raises(UsageError, match="standard input holds triples"):
        prepare_corpus(["-"], tmp_path / "out", standard_input=io.BytesIO(piped))
    settings = PreparationSettings(format="text", val_fraction=0)
    prepare_corpus(["-"], tmp_path / "out", settings, standard_input=io.BytesIO(piped))

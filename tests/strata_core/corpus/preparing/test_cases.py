"""Acceptance cases C01 to C16 of the shared folder, as far as they concern the library."""

import json
import runpy
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from strata_core.corpus.preparing.preparation import PreparationSettings, PreparedCorpus, prepare_corpus
from strata_core.errors import DataError, UsageError
from tests.strata_core.corpus.helpers import SHARED, documents_of, folder_bytes, shard_ids

CASES = SHARED / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared acceptance cases are not here")


@pytest.fixture
def prepare(tmp_path: Path):
    """Prepares inputs with the byte tokenizer of the cases, where tokens are bytes plus one a document."""

    def run(*inputs: Path, out: str = "out", tokenizer: Path | None = None, on_error: str = "stop") -> PreparedCorpus:
        settings = PreparationSettings(
            tokenizer=tokenizer or CASES / "_common" / "tokenizer_bytes.json",
            val_fraction=0,
            on_error=on_error,
            workers=1,
        )
        return prepare_corpus(inputs, tmp_path / out, settings)

    return run


def test_c01_a_byte_order_mark_is_dropped_at_file_start_only(tmp_path: Path, prepare) -> None:
    info = prepare(CASES / "C01" / "bom.jsonl", out="bom").info
    prepare(CASES / "C01" / "nobom.jsonl", out="nobom")
    assert (info.documents, info.tokens) == (2, 22)
    one, other = folder_bytes(tmp_path / "bom"), folder_bytes(tmp_path / "nobom")
    assert one["train-00000.bin"] == other["train-00000.bin"]
    assert one["train-00000.idx"] == other["train-00000.idx"]
    assert "\ufeff" in documents_of(tmp_path / "bom")["train"][1]
    prepare(CASES / "C01" / "bom.txt", out="text")
    assert shard_ids(tmp_path / "text", "train-00000")[0] == 112


def test_c02_only_line_feeds_end_a_record(tmp_path: Path, prepare) -> None:
    info = prepare(CASES / "C02" / "sep.jsonl", out="sep").info
    assert (info.documents, info.tokens) == (3, 58)
    info = prepare(CASES / "C02" / "crlf.jsonl", out="crlf").info
    assert (info.documents, info.tokens) == (2, 9)
    assert documents_of(tmp_path / "crlf")["train"] == ["a b", "c\r\nd"]
    prepare(CASES / "C02" / "crlf.txt", out="text")
    assert documents_of(tmp_path / "text")["train"] == ["line one\r\nline two\r\n"]


def test_c04_gzip_of_many_members_and_broken_ones(tmp_path: Path, prepare) -> None:
    assert prepare(CASES / "C04" / "two_members.jsonl.gz", out="two").info.documents == 5
    assert prepare(CASES / "C04" / "garbage_tail.jsonl.gz", out="tail").info.documents == 3
    for name, cause in (("cut", "cut short"), ("badcrc", "damaged"), ("not_gzip", "not gzip although the name")):
        with pytest.raises(DataError, match=rf"{name}\.jsonl\.gz: .*{cause}"):
            prepare(CASES / "C04" / f"{name}.jsonl.gz", out=name)
        assert not [path for path in tmp_path.iterdir() if name in path.name]


def test_c05_ids_beyond_sixteen_bits_come_back(tmp_path: Path, prepare) -> None:
    case = tmp_path / "C05"
    case.mkdir()
    for name in ("make.py", "text.txt", "text_edge.txt"):
        shutil.copyfile(CASES / "C05" / name, case / name)
    runpy.run_path(str(case / "make.py"))
    prepared = prepare(case / "text.txt", out="big", tokenizer=case / "big_vocab.json")
    assert shard_ids(tmp_path / "big", "train-00000") == [69999, 65536, 65535, 1, 70000]
    assert prepared.info.dtype == "uint32"
    prepared = prepare(case / "text_edge.txt", out="edge", tokenizer=case / "edge_vocab.json")
    assert shard_ids(tmp_path / "edge", "train-00000") == [65534, 1, 65535]
    assert prepared.info.dtype == "uint16"


def test_c08_a_spelled_end_of_text_is_bytes(tmp_path: Path, prepare) -> None:
    info = prepare(CASES / "C08" / "inject.jsonl").info
    assert (info.documents, info.tokens, info.literal_special_tokens) == (3, 47, 2)
    assert shard_ids(tmp_path / "out", "train-00000").count(256) == 3


def test_c10_empty_documents_are_counted_and_left_out(tmp_path: Path, prepare) -> None:
    info = prepare(CASES / "C10" / "empty_first.jsonl", out="first").info
    assert (info.documents, info.tokens, info.skipped) == (3, 11, {"empty": 2})
    ids = shard_ids(tmp_path / "first", "train-00000")
    assert (256, 256) not in list(pairwise(ids))
    info = prepare(CASES / "C10" / "blank_lines.jsonl", out="blank").info
    assert (info.documents, info.tokens, info.skipped) == (2, 7, {})
    with pytest.raises(DataError, match="no documents"):
        prepare(CASES / "C10" / "only_empty.jsonl", out="none")


def test_c11_records_of_eight_kinds(tmp_path: Path, prepare) -> None:
    with pytest.raises(DataError, match=r"mixed\.jsonl:2: key 'text' absent \(keys seen: body\)"):
        prepare(CASES / "C11" / "mixed.jsonl")
    info = prepare(CASES / "C11" / "mixed.jsonl", on_error="skip").info
    assert documents_of(tmp_path / "out")["train"] == ["good one", "good two"]
    assert info.skipped == {
        "missing key": 1,
        "null": 1,
        "not a string": 2,
        "not an object": 3,
        "bad JSON": 1,
        "repeated key": 1,
    }
    assert info.documents + sum(info.skipped.values()) == 11


def test_c13_bytes_that_are_no_text(tmp_path: Path, prepare) -> None:
    prepare(CASES / "C13" / "nul.txt", out="nul")
    assert documents_of(tmp_path / "nul")["train"] == ["alpha\0beta\ngamma\n"]
    assert prepare(CASES / "C13" / "nul.jsonl", out="nuls").info.documents == 2
    with pytest.raises(DataError, match=r"bad_utf8\.txt: not UTF-8 at byte 3 \(0xe9\)"):
        prepare(CASES / "C13" / "bad_utf8.txt")
    with pytest.raises(DataError, match="looks like UTF-16"):
        prepare(CASES / "C13" / "utf16.txt")
    with pytest.raises(DataError, match=r"lone_surrogate\.jsonl:1"):
        prepare(CASES / "C13" / "lone_surrogate.jsonl")


def test_c14_a_tree_with_loops_links_and_hidden_folders(tmp_path: Path, prepare) -> None:
    case = tmp_path / "C14"
    case.mkdir()
    shutil.copy(CASES / "C14" / "make.sh", case)
    subprocess.run(["sh", str(case / "make.sh")], check=True)
    prepared = prepare(case / "tree")
    wanted = ["alpha\n", "bravo\n", "ten\n", "nine\n", "delta\n"]
    assert documents_of(tmp_path / "out")["train"] == wanted
    passed_over = {one.name: one.reason for one in prepared.passed_over}
    assert set(passed_over) == {".ipynb_checkpoints", ".git", "readme.md", "dangling.txt", "link.txt", "sub/loop"}
    subprocess.run(["cp", "-r", str(case / "tree"), str(case / "copy")], check=True)
    prepare(case / "copy", out="again")
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "again")


def test_c14_files_and_folders_in_each_others_place(tmp_path: Path, prepare) -> None:
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "file.txt").write_text("x")
    for wrong in (tmp_path / "folder.txt", tmp_path / "file.txt" / "below"):
        with pytest.raises(UsageError, match=wrong.name):
            prepare(wrong)


def test_the_small_corpus_of_the_training_cases(prepare) -> None:
    info = prepare(CASES / "_common" / "corpus_tiny.jsonl").info
    assert (info.documents, info.tokens) == (24, 1618)


def _texts_of_the_real_data() -> list[str]:
    """The documents in reading order: folders sorted by path bytes, JSON Lines one a line, text files whole."""
    texts = []
    for path in sorted((SHARED / "data" / "text").rglob("*")):
        if path.suffix == ".jsonl":
            texts += [json.loads(line)["text"] for line in path.read_bytes().split(b"\n") if line]
        elif path.suffix == ".txt":
            texts.append(path.read_bytes().decode())
    return texts


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "backend"), [(1, "tokenizers"), (4, "tokenizers"), (1, "auto"), (4, "auto")])
def test_real_prose_comes_back_and_its_bytes_do_not_depend_on_workers_or_backend(
    tmp_path: Path, workers: int, backend: str
) -> None:
    data = SHARED / "data" / "text"
    if not data.is_dir():
        pytest.skip("the shared text is not here")
    prepare_corpus([data], tmp_path / "one", PreparationSettings(workers=1, backend="tokenizers"))
    prepare_corpus([data], tmp_path / "other", PreparationSettings(workers=workers, backend=backend))
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "other")
    found = documents_of(tmp_path / "other")
    held_out = set(found["val"])
    texts = _texts_of_the_real_data()
    assert found["train"] == [text for text in texts if text not in held_out]
    assert found["val"] == [text for text in texts if text in held_out]


def test_short_documents_of_the_real_data_come_back(tmp_path: Path) -> None:
    path = SHARED / "data" / "text" / "docs" / "pd_short_docs.jsonl"
    if not path.is_file():
        pytest.skip("the shared text is not here")
    prepare_corpus([path], tmp_path / "out", PreparationSettings(vocab_size=1000, workers=2))
    found = documents_of(tmp_path / "out")
    texts = [json.loads(line)["text"] for line in path.read_bytes().split(b"\n") if line]
    assert found["train"] == [text for text in texts if text not in set(found["val"])]
    assert len(found["train"]) + len(found["val"]) == 1517

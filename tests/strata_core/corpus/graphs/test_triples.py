"""Knowledge graphs as files of triples."""

from __future__ import annotations

import numpy as np
import pytest

from strata_core.corpus.graphs.triples.reading import read_triples
from strata_core.errors import DataError, UsageError
from tests.strata_core.corpus.helpers import SHARED

NAMED = {
    "train.txt": "ann\tknows\tbob\nbob\tknows\tcid\nann\tknows\tbob\r\n\nann\tlikes\tann\n",
    "valid.txt": "ann\tknows\tcid\nann\tknows\tbob\n",
    "test.txt": "ann\tfears\tdee\ndee\tknows\teve\n",
}
OPENKE = {
    "entity2id.txt": "3\r\nann\t0\r\ncid\t2\r\nbob\t1\r\n",
    "relation2id.txt": "2\r\nknows\t0\r\nlikes\t1\r\n",
    "train2id.txt": "2\n0 1 0\n1 2 1\n",
    "valid2id.txt": "1\n0\t2\t1\n",
    "test2id.txt": "0\n",
}


def folder_of(folder, files, **changes):
    folder.mkdir(exist_ok=True)
    for name, text in (files | changes).items():
        (folder / name).write_text(text, newline="")
    return folder


def test_names_get_numbers_in_order_of_first_occurrence(tmp_path) -> None:
    triples = read_triples(folder_of(tmp_path, NAMED))
    assert triples.entities == ("ann", "bob", "cid", "dee", "eve")
    assert triples.relations == ("knows", "likes", "fears")
    assert triples.splits["train"].tolist() == [[0, 0, 1], [1, 0, 2], [0, 1, 0]]
    assert triples.splits["test"].tolist() == [[0, 2, 3], [3, 0, 4]]
    assert triples.splits["train"].dtype == np.int32


def test_what_comes_twice_and_what_training_never_sees_is_counted(tmp_path) -> None:
    triples = read_triples(folder_of(tmp_path, NAMED))
    assert triples.repeated == {"train": 1, "valid": 0, "test": 0}
    assert triples.known == {"valid": 1, "test": 0}
    assert triples.unseen_entities == {"valid": 0, "test": 2}
    assert triples.unseen_relations == {"valid": 0, "test": 1}


def test_other_orders_of_columns_are_read_when_said(tmp_path) -> None:
    files = dict.fromkeys(NAMED, "knows\tbob\tann\n")
    triples = read_triples(folder_of(tmp_path, files), columns=("relation", "tail", "head"))
    assert triples.entities == ("ann", "bob") and triples.splits["train"].tolist() == [[0, 0, 1]]


def test_numbers_in_the_place_of_names_are_names(tmp_path) -> None:
    triples = read_triples(folder_of(tmp_path, dict.fromkeys(NAMED, "7\t0\t3\n")))
    assert triples.entities == ("7", "3") and triples.relations == ("0",)


def test_openke_files_have_head_tail_relation_and_counts(tmp_path) -> None:
    triples = read_triples(folder_of(tmp_path, OPENKE))
    assert triples.entities == ("ann", "bob", "cid") and triples.relations == ("knows", "likes")
    assert triples.splits["train"].tolist() == [[0, 0, 1], [1, 1, 2]]
    assert triples.splits["valid"].tolist() == [[0, 1, 2]] and triples.splits["test"].shape == (0, 3)


BAD_NAMED = {
    "two columns": ({"valid.txt": "ann\tknows\n"}, r"valid\.txt:1: 2 columns where a triple has 3"),
    "spaces": ({"train.txt": "ann knows bob\n"}, r"train\.txt:1: 1 columns"),
    "empty column": ({"train.txt": "ann\t\tbob\n"}, r"train\.txt:1: an empty column"),
    "nothing": ({"train.txt": "\n"}, "no triples to train on"),
}
BAD_OPENKE = {
    "count too large": ({"train2id.txt": "3\n0 1 0\n1 2 1\n"}, r"train2id\.txt: 2 triples where its first line says 3"),
    "no count": ({"train2id.txt": "0 1 0\n"}, r"train2id\.txt:1: '0 1 0' where the layout of OpenKE has a count"),
    "empty file": ({"train2id.txt": ""}, r"train2id\.txt:1: '' where"),
    "relation out of range": ({"valid2id.txt": "1\n0 1 2\n"}, r"valid2id\.txt:2: relation 2 of 2"),
    "entity out of range": ({"valid2id.txt": "1\n0 3 0\n"}, r"valid2id\.txt:2: tail 3 of 3"),
    "negative": ({"valid2id.txt": "1\n0 -1 0\n"}, r"valid2id\.txt:2: not three numbers"),
    "too many": ({"valid2id.txt": "1\n0 1 0 1\n"}, r"valid2id\.txt:2: not three numbers"),
    "name twice": ({"relation2id.txt": "2\na\t0\nb\t0\n"}, r"relation2id\.txt:3: number 0 is given already"),
    "name beyond": ({"relation2id.txt": "2\na\t0\nb\t2\n"}, r"relation2id\.txt:3: number 2 is not below the count 2"),
    "name absent": ({"relation2id.txt": "2\na\t0\n"}, r"relation2id\.txt: 1 names where its first line says 2"),
}


@pytest.mark.parametrize("changes, message", BAD_NAMED.values(), ids=BAD_NAMED)
def test_a_bad_line_of_names_is_refused_by_file_and_line(tmp_path, changes, message) -> None:
    with pytest.raises(DataError, match=message):
        read_triples(folder_of(tmp_path, NAMED, **changes))


@pytest.mark.parametrize("changes, message", BAD_OPENKE.values(), ids=BAD_OPENKE)
def test_a_bad_line_of_numbers_is_refused_by_file_and_line(tmp_path, changes, message) -> None:
    with pytest.raises(DataError, match=message):
        read_triples(folder_of(tmp_path, OPENKE, **changes))


def test_bytes_that_are_no_utf8_are_refused(tmp_path) -> None:
    (folder_of(tmp_path, NAMED) / "test.txt").write_bytes(b"ann\tknows\tbob\nann\tknows\t\xff\n")
    with pytest.raises(DataError, match=r"test\.txt:2: byte 0xff is not UTF-8"):
        read_triples(tmp_path)


def test_absent_files_folders_and_columns_are_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match="there is no such file or folder"):
        read_triples(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"train\.txt: missing"):
        read_triples(tmp_path)
    with pytest.raises(UsageError, match="columns head tail"):
        read_triples(tmp_path, columns=("head", "tail"))


# Entities, relations, and triples of train, valid, test as in the files, from the data sets' own descriptions.
PUBLISHED = {
    "nations": (14, 55, 1592, 199, 201),
    "kinship": (104, 25, 8544, 1068, 1074),
    "umls": (135, 46, 5216, 652, 661),
    "wn18rr": (40943, 11, 86835, 3034, 3134),
    "fb15k-237": (14541, 237, 272115, 17535, 20466),
    "countries_S3": (271, 2, 985, 24, 24),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_data_sets_have_the_published_counts(name) -> None:
    folder = SHARED / "data" / "kg" / name
    if not folder.is_dir():
        pytest.skip("the shared data are not here")
    triples = read_triples(folder)
    sizes = [len(triples.splits[split]) + triples.repeated[split] for split in ("train", "valid", "test")]
    assert (len(triples.entities), len(triples.relations), *sizes) == PUBLISHED[name]
    if name == "wn18rr":
        held_out = np.concatenate([triples.splits["valid"], triples.splits["test"]])
        assert len(np.setdiff1d(held_out[:, [0, 2]], triples.splits["train"][:, [0, 2]])) == 384

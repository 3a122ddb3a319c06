"""Which files of triples there are, and what each is for."""

from __future__ import annotations

import pytest

from strata_core.corpus.graphs.triples.files import find_triples, in_folder, split_in_name
from strata_core.errors import DataError, UsageError
from tests.strata_core.corpus.graphs.test_triples import NAMED, OPENKE, folder_of
from tests.strata_core.corpus.helpers import write_compressed

ROWS = "ann\tknows\tbob\n"


def splits(found) -> dict[str, str]:
    return {one.file.path.name: one.split for one in found.files}


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.txt", "train"),
        ("TRAINING.tsv.gz", "train"),
        ("FB15k-237_trn.csv", "train"),
        ("train-00001.nt", "train"),
        ("kg.train.nt.zst", "train"),
        ("valid.txt", "valid"),
        ("validation.csv", "valid"),
        ("x_val.txt", "valid"),
        ("dev_triples.tsv", "valid"),
        ("test.txt", "test"),
        ("my-testing.nt", "test"),
        ("contest.txt", None),
        ("trainer.txt", None),
        ("train_test.txt", None),
        ("graph.csv", None),
    ],
)
def test_the_words_of_a_name_tell_the_split(name, split) -> None:
    assert split_in_name(name) == split


def test_files_are_read_in_the_order_of_the_splits_whatever_the_order_they_come_in(tmp_path) -> None:
    folder = folder_of(tmp_path, {"test.tsv": ROWS, "dev.csv": "a,b,c\n", "train.nt": "<a> <b> <c> .\n"})
    paths = [folder / name for name in ("test.tsv", "dev.csv", "train.nt")]
    assert list(splits(find_triples(paths)).items()) == [
        ("train.nt", "train"),
        ("dev.csv", "valid"),
        ("test.tsv", "test"),
    ]


def test_files_without_a_split_in_their_names_are_for_training_where_no_other_is(tmp_path) -> None:
    folder = folder_of(tmp_path, {"a.tsv": ROWS, "b.tsv": ROWS, "test.tsv": ROWS})
    found = find_triples([folder / "a.tsv", folder / "test.tsv", folder / "b.tsv"])
    assert splits(found) == {"a.tsv": "train", "b.tsv": "train", "test.tsv": "test"}


def test_a_file_whose_name_tells_no_split_beside_others_that_do_is_refused(tmp_path) -> None:
    folder = folder_of(tmp_path, {"train.tsv": ROWS, "more.tsv": ROWS})
    with pytest.raises(UsageError, match=r"more\.tsv: the name tells no split"):
        find_triples([folder / "train.tsv", folder / "more.tsv"])


def test_nothing_to_train_on_is_refused(tmp_path) -> None:
    folder = folder_of(tmp_path, {"test.tsv": ROWS})
    with pytest.raises(DataError, match=r"test\.tsv: no triples to train on"):
        find_triples([folder / "test.tsv"])


def test_triples_that_do_not_hold_are_never_taken_for_some_that_do(tmp_path) -> None:
    folder = folder_of(tmp_path, {"train.tsv": ROWS, "valid_negatives.tsv": ROWS, "test.tsv": ROWS})
    with pytest.raises(UsageError, match="triples that do not hold"):
        find_triples([folder / "train.tsv", folder / "valid_negatives.tsv"])
    found = find_triples([folder])
    assert splits(found) == {"train.tsv": "train", "test.tsv": "test"}
    assert [(one.name, one.reason) for one in found.passed_over] == [
        ("valid_negatives.tsv", "by name triples that do not hold")
    ]


def test_a_folder_is_read_by_the_words_in_its_names_and_the_rest_is_passed_over(tmp_path) -> None:
    folder = folder_of(
        tmp_path,
        {"train.tsv": ROWS, "dev.tsv": ROWS, "README.txt": "hi\n", "entity2text.tsv": "a\tb\n", "all.tsv": ROWS},
    )
    (folder / "raw").mkdir()
    found = find_triples([folder])
    assert splits(found) == {"train.tsv": "train", "dev.tsv": "valid"} and found.others == ()
    assert {one.name: one.reason for one in found.passed_over} == {
        "README.txt": "no file of triples",
        "all.tsv": "its name tells no split",
        "entity2text.tsv": "its name tells no split",
        "raw": "a folder inside a folder of triples",
    }


def test_the_usual_three_files_of_a_folder_are_all_that_is_read_of_it(tmp_path) -> None:
    found = find_triples([folder_of(tmp_path, NAMED | {"train.tsv": ROWS, "valid_negatives.txt": ROWS})])
    assert list(splits(found)) == list(NAMED)


def test_compressed_files_of_a_folder_are_found(tmp_path) -> None:
    write_compressed(tmp_path / "kg" / "train.tsv.gz", ROWS)
    write_compressed(tmp_path / "kg" / "test.nt.zst", "<a> <b> <c> .\n")
    assert splits(find_triples([tmp_path / "kg"])) == {"train.tsv.gz": "train", "test.nt.zst": "test"}


def test_text_in_a_folder_beside_triples_is_another_kind(tmp_path) -> None:
    found = in_folder(folder_of(tmp_path, {"train.tsv": ROWS, "novel.txt": "Once.\n", "LICENSE.txt": "Free.\n"}))
    assert [path.name for path in found.others] == ["novel.txt"]


def test_files_of_openke_are_read_as_their_folder(tmp_path) -> None:
    folder = folder_of(tmp_path, OPENKE)
    assert find_triples([folder / "train2id.txt", folder / "test2id.txt"]).openke == folder
    assert find_triples([folder]).openke == folder


@pytest.mark.parametrize("name", ["kg.parquet", "kg.ttl", "kg.xlsx"])
def test_formats_that_are_not_read_are_refused_with_what_to_do(tmp_path, name) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(UsageError, match="its format is not read") as refused:
        find_triples([tmp_path / name])
    assert "python -c" in refused.value.hint

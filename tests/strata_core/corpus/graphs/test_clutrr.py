"""CLUTRR read as graphs."""

from __future__ import annotations

import json

import pytest

from strata_core.corpus.graphs.clutrr import clutrr_files, clutrr_names, kinship_examples, read_clutrr
from strata_core.corpus.graphs.example import Branch, Mode, Query, example_faults
from strata_core.errors import DataError, UsageError
from tests.strata_core.corpus.helpers import SHARED

CHAIN = {"id": "c", "hops": 2, "edges": [[0, "father", 1], [1, "sister", 2]], "query": [0, 2], "target": "aunt"}
RETURNING = {
    "id": "r",
    "hops": 4,
    "edges": [[0, "son", 1], [1, "sister", 2], [2, "father", 0], [0, "daughter", 2]],
    "query": [0, 2],
    "target": "daughter",
    "genders": ["male", "male", "female"],
}


def read(*records):
    lines = [json.dumps(record).encode() + b"\n" for record in records]
    return list(read_clutrr(lines, file="train.jsonl"))


def test_a_chain_asks_for_the_label_between_its_ends() -> None:
    kinships = read(CHAIN)
    names = clutrr_names(kinships)
    (example,) = kinship_examples(kinships, names)
    assert names.relations == ("father", "sister") and names.targets == ("aunt",)
    assert example.query == Query(Mode.RELATION, (Branch(0),), 2) and example.target == 0
    assert example.edges == ((0, 0, 1), (1, 1, 2)) and len(example.node_types) == 3
    assert example.paths[0].edges == (0, 1)


def test_a_walk_that_comes_back_keeps_all_its_edges_over_fewer_nodes() -> None:
    kinships = read(RETURNING)
    names = clutrr_names(kinships)
    (example,) = kinship_examples(kinships, names)
    assert len(example.node_types) == 3 and len(example.edges) == 4 and example.paths[0].edges == (0, 1, 2, 3)
    assert example_faults(example, names) == []


BAD = {
    "no id": ({"id": 3}, "id is 3, not a string"),
    "no target": ({"target": None}, "target is None, not a string"),
    "no edges": ({"edges": []}, "edges is not a list"),
    "edge of two": ({"edges": [[0, "father"]]}, "edges is not a list"),
    "negative node": ({"edges": [[0, "father", -1]]}, "edges is not a list"),
    "query of three": ({"query": [0, 1, 2]}, "not two nodes"),
    "a node left out": ({"edges": [[0, "father", 9]], "query": [0, 9]}, "2 nodes are in the edges, although"),
    "other end": ({"query": [0, 1]}, "the edges are no walk from 0 to 1"),
    "gap": ({"edges": [[0, "father", 1], [0, "son", 2]]}, "the edges are no walk"),
    "genders": ({"genders": ["male"]}, "not a list with one for each of 3 nodes"),
}


@pytest.mark.parametrize("changes, message", BAD.values(), ids=BAD)
def test_a_line_that_is_no_example_is_refused_by_line_and_id(changes, message) -> None:
    with pytest.raises(DataError, match=r"train\.jsonl:2 \(id ") as refused:
        read(CHAIN, CHAIN | changes)
    assert message in refused.value.message


@pytest.mark.parametrize("line", [b"{", b"[]", b"\xff"])
def test_a_line_that_is_no_object_is_refused_by_line(line) -> None:
    with pytest.raises(DataError, match=r"f\.jsonl:1: not "):
        list(read_clutrr([line], file="f.jsonl"))


def test_relations_that_training_does_not_have_are_refused_by_id() -> None:
    names = clutrr_names(read(CHAIN))
    with pytest.raises(DataError, match="example c: wife does not occur in training"):
        list(kinship_examples(read(CHAIN | {"edges": [[0, "father", 1], [1, "wife", 2]]}), names))
    with pytest.raises(DataError, match="example c: uncle does not occur in training"):
        list(kinship_examples(read(CHAIN | {"target": "uncle"}), names))


def test_files_are_found_by_split_in_order_of_hops(tmp_path) -> None:
    with pytest.raises(UsageError):
        clutrr_files(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"no train\.jsonl"):
        clutrr_files(tmp_path)
    for name in ("train.jsonl", "test_10.jsonl", "test_2.jsonl", "test_x.jsonl"):
        (tmp_path / name).touch()
    assert list(clutrr_files(tmp_path)) == ["train", "test-02", "test-10"]


# Examples of train and of each number of hops from 2 to 10, as the data came.
PUBLISHED = {
    "089907f8": (10094, 38, 105, 190, 174, 107, 144, 150, 119, 119),
    "db9b8f04": (15083, 38, 107, 77, 185, 105, 155, 135, 124, 122),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_data_sets_have_the_published_counts(name) -> None:
    folder = SHARED / "data" / "kg_noncommercial" / f"clutrr_data_{name}"
    if not folder.is_dir():
        pytest.skip("the shared data are not here")
    splits = {}
    for split, path in clutrr_files(folder).items():
        with open(path, "rb") as lines:
            splits[split] = list(read_clutrr(lines, file=path.name))
    assert tuple(map(len, splits.values())) == PUBLISHED[name]
    names = clutrr_names(splits["train"])
    assert len(names.targets) == 18 and len(names.relations) == 14
    longest = list(kinship_examples(splits["test-10"], names))
    assert all(len(example.edges) == 10 for example in longest)
    assert sum(len(example.node_types) < 11 for example in longest) > 50

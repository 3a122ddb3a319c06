"""Corpora of graphs that are written by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.example import Branch, Mode, Query, Status
from strata_core.corpus.graphs.jsonl_names import names_in_lines
from strata_core.corpus.graphs.jsonl_preparation import prepare_graph_lines_corpus
from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import DataError, UsageError
from strata_core.manifest import verify
from tests.strata_core.corpus.helpers import SHARED, Warnings, folder_bytes, write_compressed

KIN = {
    "id": "kin",
    "num_nodes": 3,
    "edges": [[0, "parent", 1], [1, "parent", 2], [0, "friend", 0], [0, "parent", 1]],
    "query": {"mode": "entity", "branches": [{"start": 2, "steps": ["parent^-1", "knows"]}]},
    "status": "supported",
    "answers": [1],
}


def write(path, *records):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def changed(name, **values):
    return KIN | {"id": name} | values


def test_names_are_those_of_edges_and_steps_in_alphabetical_order() -> None:
    assert names_in_lines([json.dumps(KIN).encode()]) == GraphNames(("friend", "knows", "parent"))


def test_numbers_stand_for_themselves_up_to_the_largest() -> None:
    record = {"edges": [[0, 2, 1]], "y": 1, "node_types": [0, 3]}
    assert names_in_lines([json.dumps(record).encode()]) == GraphNames(
        ("0", "1", "2"), ("0", "1", "2", "3"), targets=("0", "1")
    )


def test_nodes_without_a_type_have_a_type_of_their_own() -> None:
    lines = [json.dumps({"edges": [], "node_types": ["cat", "ant"]}).encode(), b'{"edges": []}', b"not JSON"]
    assert names_in_lines(lines) == GraphNames(("edge",), ("node", "ant", "cat"))


def test_names_and_numbers_for_the_same_are_refused() -> None:
    with pytest.raises(DataError, match=r"relations are given by name \(r\) and by number \(3\)"):
        names_in_lines([b'{"edges": [[0, "r", 1], [0, 3, 1]]}'])


def test_a_number_beyond_reason_makes_no_names() -> None:
    assert names_in_lines([b'{"edges": [[0, 999999999999, 1]]}']).relations == ("edge",)


def test_splits_are_told_by_the_names_of_files(tmp_path) -> None:
    for split in ("train", "valid", "test", "test_long"):
        write(tmp_path / "in" / f"{split}.jsonl", changed(split), changed(f"{split}-2", status="refuted", answers=[]))
    prepare_graph_lines_corpus(tmp_path / "in", tmp_path / "corpus")
    corpus = open_graph_corpus(tmp_path / "corpus")
    assert not verify(tmp_path / "corpus").faults
    assert {name: counts["examples"] for name, counts in corpus.info.splits.items()} == {
        "train": 2,
        "test": 2,
        "test-long": 2,
        "val": 2,
    }
    example = corpus.split("test-long").example(0)
    assert example.id == "test_long" and example.status == Status.SUPPORTED and example.answers == (1,)
    assert example.query == Query(Mode.ENTITY, (Branch(2, (5, 1)),))
    assert example.edges == ((0, 2, 1), (1, 2, 2), (0, 0, 0), (0, 2, 1)), "self-loops and parallel edges are edges"


def test_a_share_is_held_out_by_id_where_no_file_is_for_validation(tmp_path) -> None:
    records = [changed(f"g{number}") for number in range(200)]
    write(tmp_path / "one" / "graphs.jsonl", *records)
    write(tmp_path / "two" / "graphs.jsonl", *reversed(records))

    def held_out(name):
        prepare_graph_lines_corpus(tmp_path / name, tmp_path / f"{name}.corpus", val_fraction=0.2)
        corpus = open_graph_corpus(tmp_path / f"{name}.corpus")
        assert len(corpus.split("train")) + len(corpus.split("val")) == 200
        return {corpus.split("val").example(index).id for index in range(len(corpus.split("val")))}

    assert 20 < len(held_out("one")) < 60
    (tmp_path / "one.corpus").rename(tmp_path / "first")
    assert held_out("one") == held_out("two")


BAD = {
    "no-nodes": {"num_nodes": 0},
    "uncounted": {"num_nodes": None},
    "out-of-range": {"edges": [[0, "parent", 3]]},
    "negative": {"edges": [[0, "parent", -1]]},
    "strange-relation": {"edges": [[0, "owns", 1]]},
    "absent-start": {"query": {"branches": [{"start": 7, "steps": ["parent"]}]}},
    "absent-answer": {"answers": [9]},
    "unanswered": {"answers": []},
}


def test_every_bad_example_is_named_by_file_line_and_id(tmp_path) -> None:
    write(tmp_path / "in" / "train.jsonl", KIN)
    test = write(tmp_path / "in" / "test.jsonl", *(changed(name, **values) for name, values in BAD.items()))
    with pytest.raises(DataError) as refused:
        prepare_graph_lines_corpus(tmp_path / "in", tmp_path / "corpus")
    assert [line.partition(")")[0] for line in refused.value.problems] == [
        f"{test}:{line} (id {name}" for line, name in enumerate(BAD, 1)
    ]
    assert "unknown relation 'owns'" in refused.value.problems[4]
    assert not (tmp_path / "corpus").exists()


def test_bad_examples_are_left_out_and_listed_when_asked(tmp_path) -> None:
    write(tmp_path / "in" / "train.jsonl", KIN, changed("bad", **BAD["out-of-range"]))
    made = prepare_graph_lines_corpus(tmp_path / "in", tmp_path / "corpus", on_error="skip", val_fraction=0)
    assert made.info.splits["train"]["examples"] == 1
    assert made.info.findings == {"skipped": {"bad-example": 1}}
    line = json.loads((tmp_path / "corpus" / "skipped.jsonl").read_text())
    assert (line["source"], line["line"], line["id"]) == ("train.jsonl", 2, "bad")


def test_graphs_without_edges_or_questions_keep_their_nodes(tmp_path) -> None:
    path = SHARED / "cases" / "T17" / "graphs.jsonl"
    if not path.exists():
        pytest.skip("the shared acceptance cases are not here")
    prepare_graph_lines_corpus(path, tmp_path / "corpus", val_fraction=0)
    train = open_graph_corpus(tmp_path / "corpus").split("train")
    batch = train.batch(np.arange(4))
    assert batch.node_offsets.tolist() == [0, 4, 5, 8, 10]
    assert sorted(batch.edges[:, [0, 2]].tolist()) == [[0, 1], [1, 0], [7, 7]]
    assert batch.node_graphs.tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 3, 3]


def test_nothing_to_train_on_is_refused(tmp_path) -> None:
    write(tmp_path / "in" / "test.jsonl", KIN)
    with pytest.raises(DataError, match="no examples to train on"):
        prepare_graph_lines_corpus(tmp_path / "in", tmp_path / "corpus")
    write(tmp_path / "empty" / "train.jsonl")
    with pytest.raises(DataError, match="no examples to train on"):
        prepare_graph_lines_corpus(tmp_path / "empty", tmp_path / "corpus")
    with pytest.raises(UsageError, match="there is no such file"):
        prepare_graph_lines_corpus(tmp_path / "absent", tmp_path / "corpus")


def test_compressed_files_and_both_suffixes_are_read_as_what_they_hold(tmp_path) -> None:
    write(tmp_path / "plain" / "train.jsonl", KIN)
    write(tmp_path / "plain" / "test-long.jsonl", changed("long"))
    write_compressed(tmp_path / "packed" / "train.ndjson", json.dumps(KIN) + "\n")
    write_compressed(tmp_path / "packed" / "test-long.jsonl.zst", json.dumps(changed("long")) + "\n")
    for name in ("plain", "packed"):
        prepare_graph_lines_corpus(tmp_path / name, tmp_path / f"{name}.corpus", val_fraction=0)
    plain, packed = (folder_bytes(tmp_path / f"{name}.corpus") for name in ("plain", "packed"))
    arrays = {name for name in plain if name.startswith("graphs/")}
    assert arrays and {name: packed[name] for name in arrays} == {name: plain[name] for name in arrays}
    assert open_graph_corpus(tmp_path / "packed.corpus").info.splits.keys() == {"train", "val", "test-long"}


def test_a_damaged_compressed_file_is_refused_by_name(tmp_path) -> None:
    path = write_compressed(tmp_path / "train.jsonl.gz", json.dumps(KIN) + "\n")
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match=r"train\.jsonl\.gz: the gzip data end inside a member"):
        prepare_graph_lines_corpus(path, tmp_path / "corpus")


def test_an_empty_validation_split_is_warned_about_where_a_share_was_asked_for(tmp_path) -> None:
    observer = Warnings()
    path = write(tmp_path / "in" / "train.jsonl", KIN)
    prepare_graph_lines_corpus(path, tmp_path / "one", val_fraction=0.01, observer=observer)
    assert observer.told == ["none of 1 examples fell into the validation split (0.01)"]
    prepare_graph_lines_corpus(path, tmp_path / "two", val_fraction=0, observer=observer)
    write(tmp_path / "in" / "val.jsonl", changed("val"))
    prepare_graph_lines_corpus(tmp_path / "in", tmp_path / "three", observer=observer)
    assert len(observer.told) == 1


def test_where_every_example_is_left_out_the_first_faults_say_why(tmp_path) -> None:
    bad = [changed(name, **values) for name, values in BAD.items() if name != "strange-relation"]
    path = write(tmp_path / "in" / "train.jsonl", *bad)
    with pytest.raises(DataError, match="no examples to train on: 7 cannot be used") as refused:
        prepare_graph_lines_corpus(path, tmp_path / "corpus", on_error="skip")
    assert refused.value.problems[0] == f"{path}:1 (id no-nodes): zero nodes; a graph has one at least"
    assert len(refused.value.problems) == 7
    assert refused.value.hint == "correct them: --on-error skip goes on with what is left, and nothing is"


def test_where_every_example_is_held_out_the_share_is_named(tmp_path) -> None:
    path = write(tmp_path / "in" / "train.jsonl", KIN)
    with pytest.raises(DataError, match="all 1 examples fell into the validation split") as refused:
        prepare_graph_lines_corpus(path, tmp_path / "corpus", val_fraction=1 - 1e-9)
    assert "--val-fraction" in refused.value.hint


def test_case_t17_with_every_graph_bad_names_them(tmp_path) -> None:
    path = SHARED / "cases" / "T17" / "bad_graphs.jsonl"
    if not path.exists():
        pytest.skip("the shared acceptance cases are not here")
    with pytest.raises(DataError) as refused:
        prepare_graph_lines_corpus(path, tmp_path / "corpus", on_error="skip")
    assert "edge 0 node 2 of 2" in refused.value.problems[0]


def test_graphs_without_a_query_are_warned_about(tmp_path) -> None:
    observer = Warnings()
    path = write(tmp_path / "in" / "train.jsonl", KIN, changed("mute", query=None))
    prepare_graph_lines_corpus(path, tmp_path / "corpus", val_fraction=0, observer=observer)
    assert observer.told == [
        "train: 1 of 2 graphs have no query: no answers are learned from such graphs, at most a status"
    ]

"""Corpora of graphs, from what they are made of to what is read back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from strata_core.corpus.generators.reasoning import ReasoningSettings
from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.example import Branch, Mode, Query
from strata_core.corpus.graphs.preparation import (
    prepare_clutrr_corpus,
    prepare_reasoning_corpus,
    prepare_triples_corpus,
)
from strata_core.corpus.reading import open_corpus
from strata_core.errors import DataError, PlaceTakenError, UsageError
from strata_core.manifest import verify
from strata_core.observer import Observer
from tests.strata_core.corpus.graphs.test_clutrr import CHAIN, RETURNING
from tests.strata_core.corpus.graphs.test_triples import NAMED, OPENKE, folder_of
from tests.strata_core.corpus.helpers import Warnings, folder_bytes

SMALL = ReasoningSettings(seed=5, n_examples={"train": 60, "val": 30, "test-size": 30})


class Listener(Observer):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def notice(self, text: str) -> None:
        self.heard.append(text)

    def warning(self, text: str) -> None:
        self.heard.append(text)


def test_a_generated_corpus_is_whole_and_says_what_it_is(tmp_path) -> None:
    made = prepare_reasoning_corpus(tmp_path / "corpus", SMALL)
    corpus = open_graph_corpus(tmp_path / "corpus")
    assert not verify(tmp_path / "corpus").faults
    assert corpus.digest == made.digest and corpus.info == made.info
    assert {name: counts["examples"] for name, counts in corpus.info.splits.items()} == SMALL.n_examples
    assert corpus.info.origin == "reasoning"
    assert corpus.info.generator["version"] == 1 and corpus.info.generator["seed"] == 5
    report = json.loads((tmp_path / "corpus" / "report.json").read_text())
    assert report["val"]["balance"]["status"] == {"supported": 10, "refuted": 10, "not_enough_info": 10}
    assert report["val"]["baselines"]["status"]["chance"] == 0.3333


def test_the_same_settings_give_the_same_bytes_and_another_seed_others(tmp_path) -> None:
    for name in ("one", "two"):
        prepare_reasoning_corpus(tmp_path / name, SMALL)
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")
    other = prepare_reasoning_corpus(tmp_path / "other", replace(SMALL, seed=6))
    assert other.digest != open_graph_corpus(tmp_path / "one").digest


def test_triples_become_one_graph_and_a_question_each(tmp_path) -> None:
    listener = Listener()
    prepare_triples_corpus(folder_of(tmp_path / "kg", NAMED), tmp_path / "corpus", observer=listener)
    corpus = open_graph_corpus(tmp_path / "corpus")
    assert not verify(tmp_path / "corpus").faults
    assert corpus.names.entities == ("ann", "bob", "cid", "dee", "eve")
    train, test = corpus.split("train"), corpus.split("test")
    assert test.example(1).query == Query(Mode.ENTITY, (Branch(3, (0,)),)) and test.example(1).answers == (4,)
    assert test.example(1).edges == train.example(0).edges == ((0, 0, 1), (1, 0, 2), (0, 1, 0))
    assert len(test.example(0).node_types) == 5, "entities that training never sees are nodes"
    assert corpus.info.findings["unseen_entities"] == {"valid": 0, "test": 2}
    assert listener.heard == [
        "understood 3 files as triples: train.txt (train), valid.txt (val), test.txt (test)",
        "train: 1 triples that came again were dropped",
        "valid: 1 of 2 triples are in train as well (a leak); they are kept, and flatter the figures",
        "test: 2 entities never occur in training",
        "test: 1 relations never occur in training",
    ]


def test_questions_about_one_graph_share_it_in_a_batch_and_name_their_own_edges(tmp_path) -> None:
    prepare_triples_corpus(folder_of(tmp_path / "kg", NAMED), tmp_path / "corpus")
    corpus = open_graph_corpus(tmp_path / "corpus")
    batch = corpus.split("train").batch(np.array([2, 0, 1, 0]))
    assert batch.node_offsets.tolist() == [0, 5] and batch.graph_of_example.tolist() == [0, 0, 0, 0]
    assert batch.edges[batch.query_edges].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 2], [0, 0, 1]]
    assert batch.branch_starts.tolist() == [0, 0, 1, 0] and batch.answers.tolist() == [0, 1, 2, 1]
    assert corpus.split("val").batch(np.array([0])).query_edges.tolist() == [-1]


def test_names_that_several_entities_share_are_told(tmp_path) -> None:
    listener = Listener()
    twice = folder_of(tmp_path / "kg", OPENKE, **{"entity2id.txt": "3\nann\t0\nann\t2\nbob\t1\n"})
    prepare_triples_corpus(twice, tmp_path / "corpus", observer=listener)
    assert [heard for heard in listener.heard if "several numbers" in heard] == [
        "entities: 1 names stand for several numbers, 'ann' for one; strata predict refuses queries that use them, "
        "so give each number a name of its own to ask about it"
    ]
    assert open_graph_corpus(tmp_path / "corpus").names.entities == ("ann", "bob", "ann")


def test_a_split_without_triples_is_empty(tmp_path) -> None:
    prepare_triples_corpus(folder_of(tmp_path / "kg", NAMED, **{"test.txt": ""}), tmp_path / "corpus")
    assert len(open_graph_corpus(tmp_path / "corpus").split("test")) == 0


def clutrr_folder(folder):
    folder.mkdir()
    train = [CHAIN | {"id": f"c{number}"} for number in range(200)] + [RETURNING]
    for name, records in (("train.jsonl", train), ("test_2.jsonl", [CHAIN])):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def test_clutrr_becomes_a_corpus_with_a_share_held_out_by_id(tmp_path) -> None:
    source = clutrr_folder(tmp_path / "clutrr")
    prepare_clutrr_corpus(source, tmp_path / "corpus", val_fraction=0.2)
    corpus = open_graph_corpus(tmp_path / "corpus")
    assert not verify(tmp_path / "corpus").faults
    sizes = {name: len(corpus.split(name)) for name in corpus.info.splits}
    assert sizes["train"] + sizes["val"] == 201 and 20 < sizes["val"] < 60 and sizes["test-02"] == 1
    lines = (source / "train.jsonl").read_text().splitlines(keepends=True)
    (source / "train.jsonl").write_text("".join(reversed(lines)))
    prepare_clutrr_corpus(source, tmp_path / "again", val_fraction=0.2)
    again = open_graph_corpus(tmp_path / "again")

    def held_out(corpus):
        val = corpus.split("val")
        return {val.example(index).id for index in range(len(val))}

    assert held_out(corpus) == held_out(again)


def test_an_empty_validation_split_of_clutrr_is_warned_about(tmp_path) -> None:
    observer = Warnings()
    source = clutrr_folder(tmp_path / "clutrr")
    prepare_clutrr_corpus(source, tmp_path / "one", val_fraction=1e-9, observer=observer)
    prepare_clutrr_corpus(source, tmp_path / "two", val_fraction=0.2, observer=observer)
    assert observer.told == ["none of 201 examples fell into the validation split (1e-09)"]


def test_what_is_no_corpus_is_told_alike_for_text_and_graphs(tmp_path) -> None:
    told = []
    for open_it in (open_corpus, open_graph_corpus):
        with pytest.raises(DataError) as refused:
            open_it(tmp_path)
        told.append((refused.value.message, refused.value.hint))
    assert told == [(f"{tmp_path}: not a corpus: it has no corpus.json", "strata prepare-corpus makes one")] * 2


def test_a_bad_source_leaves_nothing_behind(tmp_path) -> None:
    source = clutrr_folder(tmp_path / "clutrr")
    with open(source / "test_2.jsonl", "a") as file:
        file.write(json.dumps(CHAIN | {"id": "odd", "target": "stranger"}) + "\n")
    with pytest.raises(DataError, match="example odd: stranger does not occur in training"):
        prepare_clutrr_corpus(source, tmp_path / "corpus")
    assert [path.name for path in tmp_path.iterdir()] == ["clutrr"]


def test_a_place_that_is_taken_is_refused(tmp_path) -> None:
    (tmp_path / "corpus").mkdir()
    with pytest.raises(PlaceTakenError):
        prepare_reasoning_corpus(tmp_path / "corpus", SMALL)


def test_settings_that_cannot_be_are_refused(tmp_path) -> None:
    for settings in (
        replace(SMALL, longest_hops=1),
        replace(SMALL, doubtful_share=1.5),
        replace(SMALL, n_examples={"tset": 3}),
        replace(SMALL, n_examples={"train": 0}),
    ):
        with pytest.raises(UsageError):
            prepare_reasoning_corpus(tmp_path / "corpus", settings)
    with pytest.raises(UsageError):
        prepare_clutrr_corpus(tmp_path, tmp_path / "corpus", val_fraction=1.0)


def test_what_is_no_corpus_of_graphs_is_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match="there is no such corpus"):
        open_graph_corpus(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"not a corpus: it has no corpus\.json"):
        open_graph_corpus(tmp_path)
    (tmp_path / "corpus.json").write_text('{"format_version": 1, "kind": "text"}')
    with pytest.raises(DataError, match="a corpus of kind 'text', not 'graph'"):
        open_graph_corpus(tmp_path)
    prepare_reasoning_corpus(tmp_path / "corpus", SMALL)
    with pytest.raises(UsageError, match="no split 'test'"):
        open_graph_corpus(tmp_path / "corpus").split("test")

"""Corpora of triples: the same bytes as ever, what is held out, and what is told."""

from __future__ import annotations

import hashlib
import json

import pytest

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.triples.preparation import prepare_triples_corpus
from strata_core.errors import UsageError
from tests.strata_core.corpus.graphs.test_preparation import Listener
from tests.strata_core.corpus.graphs.test_triples import NAMED, OPENKE, folder_of
from tests.strata_core.corpus.helpers import SHARED, folder_bytes

RING = "".join(f"e{i}\tnext\te{(i + 1) % 200}\ne{i}\tskip\te{(i + 2) % 200}\n" for i in range(200))
NAMED_DIGEST = "66391c5ffb49bbb37f598b47a8ea0a6ff61f3b0a24e1301a04a3e236b6bfd626"
OPENKE_DIGEST = "59917496b6abcdbf5fd3d13ca7ba06ef9b4b5a99466c7fd920c1acb6c8fea0a8"
DIGESTS = {
    "nations": "6703ec1021a586d850d26954aa5d65eb1f219c82cce9bcb6ba1d43005cc8634e",
    "countries_S3": "7a2f8bad5605d6049b898be8ffd54a643ac7c886d6776f347e22e69130de1083",
    "umls": "82e9b4158b1d8e32307b94c94eab94cf9347fb02ee76f5b2a49aabaf0ac819b2",
    "codex-s": "4afe141488916341c0a89c1ebe492ef22340c4c685f0ee61dd2471085ec511bb",
}
"""What version 0.1 made of these folders."""


@pytest.mark.parametrize(("files", "digest"), [(NAMED, NAMED_DIGEST), (OPENKE, OPENKE_DIGEST)])
def test_a_folder_gives_the_corpus_that_it_always_gave(tmp_path, files, digest) -> None:
    made = prepare_triples_corpus(folder_of(tmp_path / "kg", files), tmp_path / "corpus")
    assert made.digest == digest


@pytest.mark.parametrize("name", DIGESTS)
def test_a_data_set_gives_the_corpus_that_it_always_gave(tmp_path, name) -> None:
    folder = SHARED / "data" / "kg" / name
    if not folder.is_dir():
        pytest.skip("the shared data are not here")
    assert prepare_triples_corpus(folder, tmp_path / "corpus").digest == DIGESTS[name]


def test_the_files_of_a_folder_in_any_order_give_the_corpus_of_the_folder(tmp_path) -> None:
    folder = folder_of(tmp_path / "kg", NAMED)
    prepare_triples_corpus(folder, tmp_path / "one")
    prepare_triples_corpus([folder / name for name in reversed(NAMED)], tmp_path / "two")
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")


def prepared(tmp_path, text, name="kg.tsv", **options):
    listener = Listener()
    (tmp_path / name).write_text(text)
    prepare_triples_corpus([tmp_path / name], tmp_path / "corpus", observer=listener, **options)
    return open_graph_corpus(tmp_path / "corpus"), listener.heard


def test_a_share_is_held_out_by_name_where_no_file_is_for_validation(tmp_path) -> None:
    corpus, heard = prepared(tmp_path, RING, val_fraction=0.1)
    n_val = len(corpus.split("val"))
    assert 20 <= n_val <= 60 and len(corpus.split("train")) == 400 - n_val and len(corpus.split("test")) == 0
    assert corpus.info.findings["held_out"] == n_val
    assert heard == [
        "understood 1 file as triples: kg.tsv (train)",
        f"no file is for validation: {n_val} of 400 training triples are held out for it, chosen by their names "
        "(--val-fraction 0.1; 0 holds nothing out)",
        "no file is for testing: the split test is empty, and strata evaluate has nothing to measure there",
    ]


def test_what_is_held_out_depends_on_no_order(tmp_path) -> None:
    def held_out(corpus):
        val = corpus.split("val")
        names = corpus.names
        asked = [val.example(index) for index in range(len(val))]
        return {
            (names.entities[one.query.branches[0].start], one.query.branches[0].steps, names.entities[one.answers[0]])
            for one in asked
        }

    lines = RING.splitlines(keepends=True)
    for place, text in (("one", RING), ("two", "".join(lines[::2] + lines[1::2]))):
        (tmp_path / place).mkdir()
        corpus, _ = prepared(tmp_path / place, text, val_fraction=0.1)
        if place == "one":
            expected = held_out(corpus)
    assert held_out(corpus) == expected


def test_no_entity_or_relation_is_held_out_whole(tmp_path) -> None:
    chain = "".join(f"e{i}\tr{i}\te{i + 1}\n" for i in range(100)) + RING
    corpus, _ = prepared(tmp_path, chain, val_fraction=0.5)
    assert len(corpus.split("val")) > 50
    assert corpus.info.findings["unseen_entities"]["valid"] == corpus.info.findings["unseen_relations"]["valid"] == 0


def test_nothing_is_held_out_where_that_is_said_and_it_is_warned_of(tmp_path) -> None:
    corpus, heard = prepared(tmp_path, RING, val_fraction=0.0)
    assert len(corpus.split("train")) == 400 and corpus.info.findings["held_out"] == 0
    assert "no file is for validation: nothing can be evaluated during training" in heard


def test_a_share_beside_a_file_for_validation_is_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"--val-fraction 0\.1, and valid\.txt is for validation"):
        prepare_triples_corpus(folder_of(tmp_path / "kg", NAMED), tmp_path / "out", val_fraction=0.1)


def test_leaks_repetitions_and_names_alike_are_told(tmp_path) -> None:
    files = {
        "train.tsv": "ann\tknows\tbob\n" * 2 + "bob\tknows\tbob \n",
        "test.tsv": "ann\tknows\tbob\nbob\tknows\tann\n",
    }
    listener = Listener()
    prepare_triples_corpus(folder_of(tmp_path / "kg", files), tmp_path / "out", val_fraction=0.0, observer=listener)
    assert "train: 1 triples that came again were dropped" in listener.heard
    leak = "test: 1 of 2 triples are in train or valid as well (a leak); they are kept, and flatter the figures"
    assert leak in listener.heard
    assert "1 entities are others but for spaces around them, such as 'bob '" in listener.heard


def test_literals_and_blank_nodes_of_several_files_are_told(tmp_path) -> None:
    files = {"train.nt": '_:b <p> "x"@en .\n_:b <p> <c> .\n', "test.nt": '_:b <p> "x"@EN .\n'}
    listener = Listener()
    prepare_triples_corpus(folder_of(tmp_path / "kg", files), tmp_path / "out", val_fraction=0.0, observer=listener)
    assert open_graph_corpus(tmp_path / "out").names.entities == ("_:b", '"x"@en', "c")
    assert "blank nodes: 1 labels are in several files, each taken for one entity" in listener.heard
    assert "literals: 2 triples end in one; each is an entity like others" in listener.heard


def test_what_was_read_stands_in_the_corpus_as_it_lay_there(tmp_path) -> None:
    corpus, _ = prepared(tmp_path, RING)
    (source,) = json.loads((corpus.path / "corpus.json").read_text())["sources"]
    assert source["name"] == "kg.tsv" and source["sha256"] == hashlib.sha256(RING.encode()).hexdigest()

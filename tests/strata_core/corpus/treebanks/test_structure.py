"""Annotated sentences written to flat arrays and read back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from strata_core.corpus.generators.treebank import synthetic_sentence
from strata_core.corpus.treebanks.labels import NO_LABEL, Labels
from strata_core.corpus.treebanks.sentence import Argument, Predicate
from strata_core.corpus.treebanks.structure_layout import ARRAYS
from strata_core.corpus.treebanks.structure_reading import StructureReader, read_labels
from strata_core.corpus.treebanks.structure_writing import StructureWriter, write_labels
from strata_core.errors import DataError, StorageError
from tests.strata_core.corpus.treebanks.helpers import MIXED, read_text, rows


def written(folder, sentences, labels=None):
    """Writes sentences with one token a word, whose id is 70,000 more than the word's number."""
    labels = labels or Labels()
    with StructureWriter(folder, labels) as writer:
        for sentence in sentences:
            n_words = len(sentence.forms)
            spans = np.stack([np.arange(n_words), np.arange(n_words) + 1], axis=1)
            writer.add(sentence, [70_001 + word for word in range(n_words)], spans)
    return labels


def small_treebank():
    first, second = read_text(MIXED)[0]
    predicates = (Predicate(2, "parler.01", (Argument("ARG0", 1), Argument("ARG1", 5))), Predicate(5, "port.01"))
    return [replace(first, predicates=predicates), second, replace(second, predicates=(), sent_id=None)]


def test_sentences_come_back_whole(tmp_path):
    sentences = small_treebank() + [synthetic_sentence(5, index) for index in range(200)]
    reader = StructureReader(tmp_path / "train", written(tmp_path / "train", sentences))
    assert len(reader) == 203
    assert [reader.sentence(index) for index in range(len(reader))] == [replace(s, file="", line=0) for s in sentences]


def test_numbers_of_a_sentence_are_views_of_the_arrays(tmp_path):
    labels = written(tmp_path / "train", small_treebank())
    reader = StructureReader(tmp_path / "train", labels)
    arrays = reader.arrays(0)
    assert arrays.tokens.tolist() == [70001, 70002, 70003, 70004, 70005, 70006]
    assert arrays.token_spans.tolist()[:2] == [[0, 1], [1, 2]]
    assert arrays.heads.tolist() == [2, 0, 5, 5, 2, 2]
    assert [labels.name("relation", number) for number in arrays.relations.tolist()][:2] == ["nsubj", "root"]
    assert arrays.rolesets.tolist() == [-1, 0, -1, -1, 1, -1]
    assert arrays.arguments.tolist() == [[2, 1, 0], [2, 5, 1]]
    assert reader.arrays(1).heads.tolist() == [2, 0, 2, 2, -1]
    assert [reader.arrays(index).has_roles for index in range(3)] == [True, False, True]
    assert reader.word_counts.tolist() == [6, 5, 5] and reader.token_counts.tolist() == [6, 5, 5]


def test_counts_and_label_counts_are_in_the_header(tmp_path):
    labels = written(tmp_path / "train", small_treebank())
    reader = StructureReader(tmp_path / "train", labels)
    assert reader.counts == {
        "sentences": 3, "words": 16, "tokens": 16, "multiword_tokens": 3, "empty_nodes": 6, "unannotated_words": 2,
        "sentences_with_roles": 2, "predicates": 2, "arguments": 2,
    }  # fmt: skip
    punctuation = labels.number("upos", "PUNCT")
    assert reader.label_counts["upos"][punctuation] == 5
    assert reader.label_counts["roleset"] == [1, 1] and reader.label_counts["role"] == [1, 1]


def test_splits_share_their_labels(tmp_path):
    labels = written(tmp_path / "train", small_treebank())
    (other,), _ = read_text(rows("0").replace("dep", "root"))
    written(tmp_path / "val", [replace(other, upos=("NOVEL",))], labels)
    write_labels(tmp_path, labels)
    again = read_labels(tmp_path)
    train, val = StructureReader(tmp_path / "train", again), StructureReader(tmp_path / "val", again)
    assert again.names("upos") == labels.names("upos") and again.names("upos")[-1] == "NOVEL"
    assert val.sentence(0).relations == ("root",) and val.sentence(0).upos == ("NOVEL",)
    assert train.label_counts["upos"][-1] == 0 and val.label_counts["upos"][-1] == 1


def test_the_same_sentences_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_labels(tmp_path / name, written(tmp_path / name / "train", small_treebank()))
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) == len(ARRAYS) + len(["lemma_rule"]) + 2
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)


def test_an_empty_split_is_read(tmp_path):
    reader = StructureReader(tmp_path / "val", written(tmp_path / "val", []))
    assert len(reader) == 0 and reader.word_counts.tolist() == []


def test_a_split_that_was_not_finished_is_refused(tmp_path):
    with pytest.raises(KeyError), StructureWriter(tmp_path / "train", Labels()):
        raise KeyError
    with pytest.raises(DataError, match=r"header\.json: cannot be read"):
        StructureReader(tmp_path / "train", Labels())


def test_a_cut_array_is_refused_by_name_and_size(tmp_path):
    labels = written(tmp_path / "train", small_treebank())
    path = tmp_path / "train" / "heads.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"heads\.bin: 63 bytes, 64 bytes expected"):
        StructureReader(tmp_path / "train", labels)
    path.unlink()
    with pytest.raises(DataError, match=r"heads\.bin: missing, 64 bytes expected"):
        StructureReader(tmp_path / "train", labels)


def test_headers_of_another_version_or_shape_are_refused(tmp_path):
    labels = written(tmp_path / "train", [])
    header = tmp_path / "train" / "header.json"
    value = json.loads(header.read_text())
    header.write_text(json.dumps(value | {"format_version": 99}))
    with pytest.raises(DataError, match="format version 99, this strata reads 1"):
        StructureReader(tmp_path / "train", labels)
    del value["rows"]
    header.write_text(json.dumps(value))
    with pytest.raises(DataError, match="rows missing"):
        StructureReader(tmp_path / "train", labels)
    header.write_text("[]")
    with pytest.raises(DataError, match="format version None"):
        StructureReader(tmp_path / "train", labels)


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError), StructureWriter(tmp_path / "file" / "train", Labels()):
        pass


def test_labels_are_numbered_in_order_of_first_use():
    labels = Labels({"upos": ["NOUN"]})
    assert [labels.number("upos", label) for label in ("VERB", "NOUN", None, "VERB")] == [1, 0, NO_LABEL, 1]
    assert labels.names("upos") == ("NOUN", "VERB") and labels.name("upos", NO_LABEL) is None


def test_lemmas_tags_and_features_come_back(tmp_path):
    first, second = read_text(MIXED)[0]
    assert first.xpos is None and first.feats is None
    tagged = replace(first, xpos=("A", None, "B", "A", "C", "."), feats=("_", "X=1|Y=2", "_", "_", "X=1", "_"))
    labels = written(tmp_path / "train", [tagged, second])
    reader = StructureReader(tmp_path / "train", labels)
    assert [reader.sentence(index) for index in (0, 1)] == [replace(s, file="", line=0) for s in (tagged, second)]
    found = reader.arrays(0).word_labels
    assert found["xpos"].tolist() == [0, -1, 1, 0, 2, 3] and found["feats"].tolist() == [0, 1, 0, 0, 2, 0]
    assert labels.name("lemma_rule", found["lemma_rule"][1]) == "L;;+r"
    assert reader.arrays(1).word_labels["xpos"].tolist() == [-1] * 5
    assert reader.label_counts["xpos"] == [2, 1, 1, 1] and reader.label_counts["feats"] == [4, 1, 1]


def test_what_no_word_is_annotated_with_leaves_no_trace(tmp_path):
    """As corpora were before there were lemmas, tags and features."""
    bare = [replace(sentence, lemmas=None, feats=("_",) * len(sentence.forms)) for sentence in small_treebank()]
    labels = written(tmp_path / "train", bare)
    write_labels(tmp_path, labels)
    arrays = {path.stem for path in (tmp_path / "train").glob("*.bin")}
    header = json.loads((tmp_path / "train" / "header.json").read_text())
    assert arrays == set(ARRAYS) == set(header["rows"])
    kinds = {"upos", "relation", "roleset", "role"}
    assert set(header["label_counts"]) == kinds
    assert set(json.loads((tmp_path / "labels.json").read_text())["labels"]) == kinds
    reader = StructureReader(tmp_path / "train", read_labels(tmp_path))
    assert reader.arrays(0).word_labels == {} and reader.sentence(0).feats is None
    assert reader.label_counts["xpos"] == []


def test_a_split_may_lack_what_another_has(tmp_path):
    first, second = read_text(MIXED)[0]
    labels = written(tmp_path / "train", [replace(first, xpos=("A",) * 6)])
    written(tmp_path / "val", [second], labels)
    val = StructureReader(tmp_path / "val", labels)
    assert set(val.arrays(0).word_labels) == {"lemma_rule"} and val.label_counts["xpos"] == [0]

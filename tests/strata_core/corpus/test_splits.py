"""Splits told by names."""

import pytest

from strata_core.corpus.splits import named_split


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("en_ewt-ud-train.conllu", "train"),
        ("sub/fr_sequoia-ud-dev.conllu.gz", "val"),
        ("EN-UD-TEST.CONLLU", "test"),
        ("valid.conll09", "val"),
        ("x_val", "val"),
        ("a\nb.train.conllu", "train"),
        ("contest.conllu", None),
        ("train-1.conllu", None),
        ("training.conllu", None),
        ("train/part.conllu", None),
        ("en.conllu", None),
    ],
)
def test_the_end_of_the_stem_names_the_split(name, split):
    assert named_split(name) == split

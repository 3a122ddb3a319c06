"""How annotated sentences lie on disk: flat little-endian arrays, one file each, cut into sentences by offsets.

    structure/
      labels.json              the labels of each kind in the order of their numbers
      SPLIT/header.json        format version, rows of each array, counts
      SPLIT/ARRAY.bin          the rows of an array, nothing else

Words are numbered from 1 within their sentence, 0 is the root; -1 stands for what is not annotated. An array of
offsets has one entry more than what it cuts: item i of its owner is rows offsets[i] to offsets[i + 1] of the array it
names.
"""

from __future__ import annotations

from typing import NamedTuple

FORMAT_VERSION = 1
LABELS_NAME = "labels.json"
HEADER_NAME = "header.json"

HAS_ROLES = 1
STARTS_DOCUMENT = 2
STARTS_PARAGRAPH = 4


class Array(NamedTuple):
    """What a file holds: the type of its numbers, how many make a row, and what the rows are."""

    dtype: str
    width: int
    rows: str


ARRAYS = {
    "sentence_flags": Array("<u1", 1, "a sentence: HAS_ROLES + STARTS_DOCUMENT + STARTS_PARAGRAPH"),
    "sentence_id_offsets": Array("<i8", 1, "offsets of sentences in sentence_ids"),
    "sentence_ids": Array("<u1", 1, "UTF-8"),
    "word_offsets": Array("<i8", 1, "offsets of sentences in the arrays of words"),
    "upos": Array("<i4", 1, "a word: number of its UPOS"),
    "heads": Array("<i4", 1, "a word: number of its head in the sentence"),
    "relations": Array("<i4", 1, "a word: number of its relation"),
    "rolesets": Array("<i4", 1, "a word: number of its roleset; -1: no predicate"),
    "space_after": Array("<u1", 1, "a word: 1 where a space follows"),
    "token_spans": Array("<i4", 2, "a word: its first token in the sentence, and the one after its last"),
    "form_offsets": Array("<i8", 1, "offsets of words in forms"),
    "forms": Array("<u1", 1, "UTF-8"),
    "token_offsets": Array("<i8", 1, "offsets of sentences in tokens"),
    "tokens": Array("<u4", 1, "a token of a sentence's text"),
    "argument_offsets": Array("<i8", 1, "offsets of sentences in arguments"),
    "arguments": Array("<i4", 3, "an argument: predicate word, head word, number of the role"),
    "range_offsets": Array("<i8", 1, "offsets of sentences in ranges"),
    "ranges": Array("<i4", 3, "a multiword token: first word, last word, 1 where a space follows"),
    "range_form_offsets": Array("<i8", 1, "offsets of ranges in range_forms"),
    "range_forms": Array("<u1", 1, "UTF-8"),
    "empty_offsets": Array("<i8", 1, "offsets of sentences in empty_nodes"),
    "empty_nodes": Array("<i4", 3, "an empty node: word it stands after, its index there, number of its UPOS"),
    "empty_form_offsets": Array("<i8", 1, "offsets of empty nodes in empty_forms"),
    "empty_forms": Array("<u1", 1, "UTF-8"),
}
"""Every array by name."""

OPTIONAL_ARRAYS = {
    "xpos": Array("<i4", 1, "a word: number of its XPOS"),
    "feats": Array("<i4", 1, "a word: number of its FEATS"),
    "lemma_rule": Array("<i4", 1, "a word: number of the rule that makes its lemma (lemma_rules)"),
}
"""Arrays of words, named as their kinds of labels; there only where words of the split are annotated so."""


def array_file(name: str) -> str:
    """The file of an array in its split's folder."""
    return f"{name}.bin"

"""Annotated sentences appended to the arrays of structure_layout: constant memory, the same bytes every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from strata_core.corpus.flat_arrays import ArrayFiles, json_bytes
from strata_core.corpus.treebanks.labels import LABEL_KINDS, NO_FEATURES, WORD_LABEL_KINDS, Labels
from strata_core.corpus.treebanks.lemma_rules import rule_of
from strata_core.corpus.treebanks.sentence import Sentence
from strata_core.corpus.treebanks.structure_layout import (
    ARRAYS,
    FORMAT_VERSION,
    HAS_ROLES,
    LABELS_NAME,
    OPTIONAL_ARRAYS,
    STARTS_DOCUMENT,
    STARTS_PARAGRAPH,
)
from strata_core.files import write_file

_KINDS = (*LABEL_KINDS, *WORD_LABEL_KINDS)


class StructureWriter:
    """Writes one split; a context manager that leaves the header last, so that what has a header is whole.

    Args:
        folder: the split's folder, to be made.
        labels: the corpus's labels, which grow as sentences bring new ones.

    Raises:
        StorageError: the file system refused.
    """

    def __init__(self, folder: Path, labels: Labels) -> None:
        self._files = ArrayFiles(folder, ARRAYS | OPTIONAL_ARRAYS, format_version=FORMAT_VERSION)
        self._labels = labels
        self._label_counts: dict[str, Counter[int]] = {kind: Counter() for kind in _KINDS}
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> StructureWriter:
        self._files.__enter__()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for kind_of_label in set(WORD_LABEL_KINDS).difference(self._kinds()):
            self._files.leave_out(kind_of_label)
        self._files.facts.update(self.facts())
        self._files.__exit__(kind)

    def add(self, sentence: Sentence, tokens: Sequence[int], token_spans: np.ndarray) -> None:
        """Appends a sentence.

        Args:
            sentence: what to write; its file and line are not kept.
            tokens: ids of the subword tokens of its text.
            token_spans: int [words, 2], the tokens of each word (word_spans.word_token_spans).
        """
        self._append_words(sentence, token_spans)
        self._files.append("tokens", tokens)
        self._append_roles(sentence)
        ranges = [(token.first, token.last, token.space_after) for token in sentence.multiword_tokens]
        self._files.append("ranges", ranges)
        self._append_texts("range_forms", "range_form_offsets", [token.form for token in sentence.multiword_tokens])
        nodes = sentence.empty_nodes
        node_upos = [self._labels.number("upos", node.upos) for node in nodes]
        self._files.append("empty_nodes", [(n.after, n.index, upos) for n, upos in zip(nodes, node_upos, strict=True)])
        self._append_texts("empty_forms", "empty_form_offsets", [node.form for node in nodes])
        self._append_texts("sentence_ids", "sentence_id_offsets", [sentence.sent_id or ""])
        flags = HAS_ROLES * (sentence.predicates is not None)
        flags += STARTS_DOCUMENT * sentence.starts_document + STARTS_PARAGRAPH * sentence.starts_paragraph
        self._files.append("sentence_flags", [flags])
        for offsets, owner in (
            ("word_offsets", "heads"),
            ("token_offsets", "tokens"),
            ("argument_offsets", "arguments"),
            ("range_offsets", "ranges"),
            ("empty_offsets", "empty_nodes"),
        ):
            self._files.append(offsets, [self._files.rows[owner]])

    def facts(self) -> dict[str, Any]:
        """What header.json says of the sentences so far beside the rows of each array: counts, and how often each label
        occurs.
        """
        return {
            "counts": {
                "sentences": self._files.rows["sentence_flags"],
                "words": self._files.rows["heads"],
                "tokens": self._files.rows["tokens"],
                "multiword_tokens": self._files.rows["ranges"],
                "empty_nodes": self._files.rows["empty_nodes"],
                "unannotated_words": self._counts["unannotated_words"],
                "sentences_with_roles": self._counts["sentences_with_roles"],
                "predicates": self._counts["predicates"],
                "arguments": self._files.rows["arguments"],
            },
            "label_counts": {
                kind: [self._label_counts[kind][number] for number in range(len(self._labels.names(kind)))]
                for kind in self._kinds()
            },
        }

    def _kinds(self) -> tuple[str, ...]:
        """LABEL_KINDS, and those of WORD_LABEL_KINDS that some word of the split is annotated with."""
        return (*LABEL_KINDS, *(kind for kind in WORD_LABEL_KINDS if self._has_any(kind)))

    def _has_any(self, kind: str) -> bool:
        return any(self._labels.name(kind, number) != NO_FEATURES for number in self._label_counts[kind])

    def _append_words(self, sentence: Sentence, token_spans: np.ndarray) -> None:
        self._files.append("upos", self._numbers("upos", sentence.upos))
        self._files.append("heads", [-1 if head is None else head for head in sentence.heads])
        self._files.append("relations", self._numbers("relation", sentence.relations))
        self._files.append("space_after", sentence.space_after)
        self._files.append("token_spans", token_spans)
        self._append_texts("forms", "form_offsets", sentence.forms)
        nothing = (None,) * len(sentence.forms)
        self._files.append("xpos", self._numbers("xpos", sentence.xpos or nothing))
        self._files.append("feats", self._numbers("feats", sentence.feats or nothing))
        lemmas = zip(sentence.forms, sentence.lemmas or nothing, strict=True)
        rules = [rule_of(form, lemma) if lemma else None for form, lemma in lemmas]
        self._files.append("lemma_rule", self._numbers("lemma_rule", rules))
        self._counts["unannotated_words"] += sentence.heads.count(None)

    def _append_roles(self, sentence: Sentence) -> None:
        rolesets: list[str | None] = [None] * len(sentence.forms)
        arguments = []
        for predicate in sentence.predicates or ():
            rolesets[predicate.word - 1] = predicate.roleset
            roles = self._numbers("role", [argument.role for argument in predicate.arguments])
            for argument, role in zip(predicate.arguments, roles, strict=True):
                arguments.append((predicate.word, argument.head, role))
        self._files.append("rolesets", self._numbers("roleset", rolesets))
        self._files.append("arguments", arguments)
        self._counts["predicates"] += len(sentence.predicates or ())
        self._counts["sentences_with_roles"] += sentence.predicates is not None

    def _numbers(self, kind: str, labels: Iterable[str | None]) -> list[int]:
        numbers = [self._labels.number(kind, label) for label in labels]
        self._label_counts[kind].update(number for number in numbers if number >= 0)
        return numbers

    def _append_texts(self, name: str, offsets: str, texts: Sequence[str]) -> None:
        encoded = [text.encode() for text in texts]
        ends = self._files.rows[name] + np.cumsum([len(text) for text in encoded], dtype=np.int64)
        self._files.append(name, np.frombuffer(b"".join(encoded), dtype=np.uint8))
        self._files.append(offsets, ends)


def write_labels(folder: Path, labels: Labels) -> None:
    """Writes labels.json, once all splits are written."""
    names = {kind: labels.names(kind) for kind in labels.used_kinds()}
    write_file(folder / LABELS_NAME, json_bytes({"format_version": FORMAT_VERSION, "labels": names}))

"""Annotated sentences appended to the arrays of structure_layout: constant memory, the same bytes every time."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from strata_core.corpus.labels import LABEL_KINDS, Labels
from strata_core.corpus.sentence import Sentence
from strata_core.corpus.structure_layout import (
    ARRAYS,
    FORMAT_VERSION,
    HAS_ROLES,
    HEADER_NAME,
    LABELS_NAME,
    OFFSETS,
    STARTS_DOCUMENT,
    STARTS_PARAGRAPH,
    array_file,
)
from strata_core.files import storage_errors, write_file


class StructureWriter:
    """Writes one split; a context manager that leaves the header last, so that what has a header is whole.

    Args:
        folder: the split's folder, to be made.
        labels: the corpus's labels, which grow as sentences bring new ones.

    Raises:
        StorageError: the file system refused.
    """

    def __init__(self, folder: Path, labels: Labels) -> None:
        self._folder = folder
        self._labels = labels
        self._paths = {name: folder / array_file(name) for name in ARRAYS}
        self._files: dict[str, BinaryIO] = {}
        self._rows = dict.fromkeys(ARRAYS, 0)
        self._label_counts: dict[str, Counter[int]] = {kind: Counter() for kind in LABEL_KINDS}
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> StructureWriter:
        with storage_errors(self._folder):
            self._folder.mkdir(parents=True)
            for name, path in self._paths.items():
                self._files[name] = open(path, "wb")
        for name in OFFSETS:
            self._append(name, [0])
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with contextlib.ExitStack() as files, storage_errors(self._folder):
            for file in self._files.values():
                files.callback(file.close)
        if kind is None:
            write_file(self._folder / HEADER_NAME, _json_bytes(self.header()))

    def add(self, sentence: Sentence, tokens: Sequence[int], token_spans: np.ndarray) -> None:
        """Appends a sentence.

        Args:
            sentence: what to write; its file and line are not kept.
            tokens: ids of the subword tokens of its text.
            token_spans: int [words, 2], the tokens of each word (word_spans.word_token_spans).
        """
        self._append_words(sentence, token_spans)
        self._append("tokens", tokens)
        self._append_roles(sentence)
        self._append("ranges", [(token.first, token.last, token.space_after) for token in sentence.multiword_tokens])
        self._append_texts("range_forms", "range_form_offsets", [token.form for token in sentence.multiword_tokens])
        nodes = sentence.empty_nodes
        node_upos = [self._labels.number("upos", node.upos) for node in nodes]
        self._append("empty_nodes", [(n.after, n.index, upos) for n, upos in zip(nodes, node_upos, strict=True)])
        self._append_texts("empty_forms", "empty_form_offsets", [node.form for node in nodes])
        self._append_texts("sentence_ids", "sentence_id_offsets", [sentence.sent_id or ""])
        flags = HAS_ROLES * (sentence.predicates is not None)
        flags += STARTS_DOCUMENT * sentence.starts_document + STARTS_PARAGRAPH * sentence.starts_paragraph
        self._append("sentence_flags", [flags])
        for offsets, owner in (
            ("word_offsets", "heads"),
            ("token_offsets", "tokens"),
            ("argument_offsets", "arguments"),
            ("range_offsets", "ranges"),
            ("empty_offsets", "empty_nodes"),
        ):
            self._append(offsets, [self._rows[owner]])

    def header(self) -> dict[str, Any]:
        """What header.json says of the sentences so far: rows of each array, counts, occurrences of each label."""
        return {
            "format_version": FORMAT_VERSION,
            "rows": dict(self._rows),
            "counts": {
                "sentences": self._rows["sentence_flags"],
                "words": self._rows["heads"],
                "tokens": self._rows["tokens"],
                "multiword_tokens": self._rows["ranges"],
                "empty_nodes": self._rows["empty_nodes"],
                "unannotated_words": self._counts["unannotated_words"],
                "sentences_with_roles": self._counts["sentences_with_roles"],
                "predicates": self._counts["predicates"],
                "arguments": self._rows["arguments"],
            },
            "label_counts": {
                kind: [self._label_counts[kind][number] for number in range(len(self._labels.names(kind)))]
                for kind in LABEL_KINDS
            },
        }

    def _append_words(self, sentence: Sentence, token_spans: np.ndarray) -> None:
        self._append("upos", self._numbers("upos", sentence.upos))
        self._append("heads", [-1 if head is None else head for head in sentence.heads])
        self._append("relations", self._numbers("relation", sentence.relations))
        self._append("space_after", sentence.space_after)
        self._append("token_spans", token_spans)
        self._append_texts("forms", "form_offsets", sentence.forms)
        self._counts["unannotated_words"] += sentence.heads.count(None)

    def _append_roles(self, sentence: Sentence) -> None:
        rolesets: list[str | None] = [None] * len(sentence.forms)
        arguments = []
        for predicate in sentence.predicates or ():
            rolesets[predicate.word - 1] = predicate.roleset
            roles = self._numbers("role", [argument.role for argument in predicate.arguments])
            for argument, role in zip(predicate.arguments, roles, strict=True):
                arguments.append((predicate.word, argument.head, role))
        self._append("rolesets", self._numbers("roleset", rolesets))
        self._append("arguments", arguments)
        self._counts["predicates"] += len(sentence.predicates or ())
        self._counts["sentences_with_roles"] += sentence.predicates is not None

    def _numbers(self, kind: str, labels: Iterable[str | None]) -> list[int]:
        numbers = [self._labels.number(kind, label) for label in labels]
        self._label_counts[kind].update(number for number in numbers if number >= 0)
        return numbers

    def _append_texts(self, name: str, offsets: str, texts: Sequence[str]) -> None:
        encoded = [text.encode() for text in texts]
        ends = self._rows[name] + np.cumsum([len(text) for text in encoded], dtype=np.int64)
        self._append(name, np.frombuffer(b"".join(encoded), dtype=np.uint8))
        self._append(offsets, ends)

    def _append(self, name: str, values: Any) -> None:
        array = np.asarray(values, dtype=ARRAYS[name].dtype)
        with storage_errors(self._paths[name], wanted_bytes=array.nbytes):
            self._files[name].write(array.tobytes())
        self._rows[name] += array.size // ARRAYS[name].width


def write_labels(folder: Path, labels: Labels) -> None:
    """Writes labels.json, once all splits are written."""
    names = {kind: labels.names(kind) for kind in LABEL_KINDS}
    write_file(folder / LABELS_NAME, _json_bytes({"format_version": FORMAT_VERSION, "labels": names}))


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"

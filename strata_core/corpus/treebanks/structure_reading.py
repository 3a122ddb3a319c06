"""Annotated sentences read back from the memory-mapped arrays of structure_layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from strata_core.corpus.flat_arrays import map_arrays, read_versioned_json
from strata_core.corpus.treebanks.labels import LABEL_KINDS, NO_FEATURES, WORD_LABEL_KINDS, Labels
from strata_core.corpus.treebanks.lemma_rules import lemma_by
from strata_core.corpus.treebanks.sentence import Argument, EmptyNode, MultiwordToken, Predicate, Sentence
from strata_core.corpus.treebanks.structure_layout import (
    ARRAYS,
    FORMAT_VERSION,
    HAS_ROLES,
    HEADER_NAME,
    LABELS_NAME,
    OPTIONAL_ARRAYS,
    STARTS_DOCUMENT,
    STARTS_PARAGRAPH,
)


@dataclass(frozen=True, slots=True)
class SentenceArrays:
    """One sentence as numbers: views of the arrays on disk, W words, T tokens, A arguments.

    Attributes:
        tokens: uint32 [T].
        token_spans: int32 [W, 2], first token of each word and the one after its last.
        upos, heads, relations: int32 [W]; -1 where not annotated.
        rolesets: int32 [W]; -1 where the word is no predicate.
        arguments: int32 [A, 3]: predicate word, head word (both from 1), number of the role.
        has_roles: False where nobody looked for predicates.
        word_labels: for each of WORD_LABEL_KINDS that the split has int32 [W]; -1 where not annotated.
    """

    tokens: np.ndarray
    token_spans: np.ndarray
    upos: np.ndarray
    heads: np.ndarray
    relations: np.ndarray
    rolesets: np.ndarray
    arguments: np.ndarray
    has_roles: bool
    word_labels: Mapping[str, np.ndarray] = field(default_factory=dict)


class StructureReader:
    """One split of annotated sentences.

    Args:
        folder: the split's folder.
        labels: the corpus's labels (read_labels).

    Raises:
        DataError: the header is missing or not understood, or a file has another size than the header says.
    """

    def __init__(self, folder: Path, labels: Labels) -> None:
        self.labels = labels
        keys = ("rows", "counts", "label_counts")
        header = read_versioned_json(folder / HEADER_NAME, format_version=FORMAT_VERSION, keys=keys)
        self.counts: dict[str, int] = header["counts"]
        found = header["label_counts"]
        self.label_counts = {kind: _padded(found[kind], labels, kind) for kind in LABEL_KINDS}
        self.label_counts |= {kind: _padded(found.get(kind, []), labels, kind) for kind in WORD_LABEL_KINDS}
        self._word_labels = [kind for kind in WORD_LABEL_KINDS if kind in header["rows"]]
        arrays = ARRAYS | {kind: OPTIONAL_ARRAYS[kind] for kind in self._word_labels}
        self._arrays = map_arrays(folder, arrays, header["rows"])

    def __len__(self) -> int:
        return self.counts["sentences"]

    @property
    def word_counts(self) -> np.ndarray:
        """int64 [sentences]: words of each sentence."""
        return np.diff(self._arrays["word_offsets"])

    @property
    def token_counts(self) -> np.ndarray:
        """int64 [sentences]: subword tokens of each sentence."""
        return np.diff(self._arrays["token_offsets"])

    def arrays(self, index: int) -> SentenceArrays:
        """Sentence number `index`, from 0, as numbers."""
        words = self._rows("word_offsets", index)
        return SentenceArrays(
            tokens=self._arrays["tokens"][self._rows("token_offsets", index)],
            token_spans=self._arrays["token_spans"][words],
            upos=self._arrays["upos"][words],
            heads=self._arrays["heads"][words],
            relations=self._arrays["relations"][words],
            rolesets=self._arrays["rolesets"][words],
            arguments=self._arrays["arguments"][self._rows("argument_offsets", index)],
            has_roles=bool(self._arrays["sentence_flags"][index] & HAS_ROLES),
            word_labels={kind: self._arrays[kind][words] for kind in self._word_labels},
        )

    def forms(self, index: int) -> tuple[str, ...]:
        """The words of sentence number `index`, from 0."""
        return self._texts("forms", "form_offsets", self._rows("word_offsets", index))

    def sentence(self, index: int) -> Sentence:
        """Sentence number `index`, from 0, as it was written but for the file and line it came from."""
        words = self._rows("word_offsets", index)
        numbers = self.arrays(index)
        flags = int(self._arrays["sentence_flags"][index])
        forms = self._texts("forms", "form_offsets", words)
        labels = {kind: self._names(kind, found) for kind, found in numbers.word_labels.items()}
        labels = {kind: names for kind, names in labels.items() if set(names) - {None, NO_FEATURES}}
        rules = labels.get("lemma_rule")
        return Sentence(
            forms=forms,
            upos=self._names("upos", numbers.upos),
            heads=tuple(None if head < 0 else head for head in numbers.heads.tolist()),
            relations=self._names("relation", numbers.relations),
            space_after=tuple(map(bool, self._arrays["space_after"][words].tolist())),
            multiword_tokens=self._multiword_tokens(index),
            empty_nodes=self._empty_nodes(index),
            predicates=self._predicates(numbers) if numbers.has_roles else None,
            sent_id=self._texts("sentence_ids", "sentence_id_offsets", slice(index, index + 1))[0] or None,
            starts_document=bool(flags & STARTS_DOCUMENT),
            starts_paragraph=bool(flags & STARTS_PARAGRAPH),
            lemmas=rules and tuple(rule and lemma_by(rule, form) for rule, form in zip(rules, forms, strict=True)),
            xpos=labels.get("xpos"),
            feats=labels.get("feats"),
        )

    def _rows(self, offsets: str, index: int) -> slice:
        start, stop = self._arrays[offsets][index : index + 2].tolist()
        return slice(start, stop)

    def _texts(self, name: str, offsets: str, rows: slice) -> tuple[str, ...]:
        cuts = self._arrays[offsets][rows.start : rows.stop + 1].tolist()
        text = self._arrays[name][cuts[0] : cuts[-1]].tobytes()
        return tuple(text[start - cuts[0] : stop - cuts[0]].decode() for start, stop in pairwise(cuts))

    def _names(self, kind: str, numbers: np.ndarray) -> tuple[str | None, ...]:
        return tuple(self.labels.name(kind, number) for number in numbers.tolist())

    def _multiword_tokens(self, index: int) -> tuple[MultiwordToken, ...]:
        rows = self._rows("range_offsets", index)
        forms = self._texts("range_forms", "range_form_offsets", rows)
        return tuple(
            MultiwordToken(first, last, form, bool(space_after))
            for (first, last, space_after), form in zip(self._arrays["ranges"][rows].tolist(), forms, strict=True)
        )

    def _empty_nodes(self, index: int) -> tuple[EmptyNode, ...]:
        rows = self._rows("empty_offsets", index)
        forms = self._texts("empty_forms", "empty_form_offsets", rows)
        return tuple(
            EmptyNode(after, place, form, self.labels.name("upos", upos))
            for (after, place, upos), form in zip(self._arrays["empty_nodes"][rows].tolist(), forms, strict=True)
        )

    def _predicates(self, numbers: SentenceArrays) -> tuple[Predicate, ...]:
        arguments: dict[int, list[Argument]] = {}
        for predicate, head, role in numbers.arguments.tolist():
            arguments.setdefault(predicate, []).append(Argument(self.labels.name("role", role) or "", head))
        return tuple(
            Predicate(word, self.labels.name("roleset", roleset) or "", tuple(arguments.get(word, ())))
            for word, roleset in enumerate(numbers.rolesets.tolist(), 1)
            if roleset >= 0
        )


def read_labels(folder: Path) -> Labels:
    """The labels of a corpus, from its structure/ folder.

    Raises:
        DataError: the file is missing or not understood.
    """
    return Labels(read_versioned_json(folder / LABELS_NAME, format_version=FORMAT_VERSION, keys=("labels",))["labels"])


def _padded(counts: list[int], labels: Labels, kind: str) -> list[int]:
    """Labels that only later splits brought do not occur in this one."""
    return counts + [0] * (len(labels.names(kind)) - len(counts))

"""Annotated sentences as documents: grouped as their file says, with the text that a language model reads."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from strata_core.corpus.format import SourceInfo
from strata_core.corpus.sources.files import InputFile
from strata_core.corpus.sources.records import Document
from strata_core.corpus.splits import named_split
from strata_core.corpus.treebanks.sentence import Sentence, detokenise
from strata_core.errors import DataError
from strata_core.files import storage_errors


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of one document, whose split is known."""

    text: str
    split: str

    @property
    def size_bytes(self) -> int:
        return len(self.text.encode())

    def documents(self, text_key: str) -> Iterator[Document]:
        """The document."""
        yield Document(self.text, self.text.encode(), self.split)


@dataclass(frozen=True, slots=True)
class AnnotatedDocument:
    """The sentences of one document in order, their text, and the split they belong to."""

    sentences: tuple[Sentence, ...]
    text: DocumentText


class TreebankSource:
    """A treebank file that has been read, checked and joined with its roles.

    Its documents lie in a file of the work folder, pickled by this process for itself.

    Args:
        file: what was read.
        spool: where the documents lie.
        info: what was read, for `corpus.json`.
        text_bytes: UTF-8 bytes of the documents' text.
        has_features: whether some word of the file has FEATS, so that one without has no features.
    """

    def __init__(
        self, file: InputFile, spool: Path, info: SourceInfo, text_bytes: int, *, has_features: bool = False
    ) -> None:
        self.shown = file.shown
        self.name = file.name
        self.split = named_split(file.name)
        self.has_features = has_features
        self.size_bytes = text_bytes
        self.position_bytes = 0
        self._spool = spool
        self._info = info

    def pieces(self, *, in_parts: bool) -> Iterator[DocumentText]:
        """Its text, as `Source.pieces`."""
        self.position_bytes = 0
        for document in self.documents():
            self.position_bytes += document.text.size_bytes
            yield document.text

    def documents(self) -> Iterator[AnnotatedDocument]:
        """Its documents in order."""
        try:
            with open(self._spool, "rb") as spool:
                while spool.peek(1):
                    yield pickle.load(spool)
        except OSError as error:
            raise DataError(f"{self._spool}: cannot be read: {error.strerror or error}") from error

    def info(self) -> SourceInfo:
        """What was read, as `Source.info`."""
        return self._info


def spool_documents(documents: Iterable[AnnotatedDocument], spool: Path) -> int:
    """Writes documents for a TreebankSource and returns the UTF-8 bytes of their text.

    Raises:
        StorageError: the file system refused.
    """
    text_bytes = 0
    with storage_errors(spool):
        file = open(spool, "wb")  # noqa: SIM115
    try:
        # An OSError of reading the documents is no fault of the spool.
        for document in documents:
            with storage_errors(spool):
                pickle.dump(document, file, pickle.HIGHEST_PROTOCOL)
            text_bytes += document.text.size_bytes
    finally:
        with storage_errors(spool):
            file.close()
    return text_bytes


def group_by_document(sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, ...]]:
    """Sentences in runs that each start where a document starts; before the first start each is a document of its own.

    A treebank without any `# newdoc` does not say what its documents are, and often is no running text at all.
    """
    held: list[Sentence] = []
    inside = False
    for sentence in sentences:
        inside |= sentence.starts_document
        if held and (sentence.starts_document or not inside):
            yield tuple(held)
            held = []
        held.append(sentence)
    if held:
        yield tuple(held)


def document_text(sentences: Iterable[Sentence]) -> str:
    """The text of a document: a line feed before a paragraph, else a space where the sentence before has one."""
    pieces: list[str] = []
    space = ""
    for sentence in sentences:
        if pieces:
            pieces.append("\n" if sentence.starts_paragraph else space)
        pieces.append(detokenise(sentence).text)
        space = " " if _ends_with_space(sentence) else ""
    return "".join(pieces)


def _ends_with_space(sentence: Sentence) -> bool:
    token = sentence.multiword_tokens[-1] if sentence.multiword_tokens else None
    ends_in_token = token is not None and token.last == len(sentence.forms)
    return token.space_after if token is not None and ends_in_token else sentence.space_after[-1]

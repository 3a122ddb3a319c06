"""Documents made into token ids, a batch at a time: what each worker does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from strata_core.corpus.format import DTYPES, smallest_dtype
from strata_core.corpus.sources.records import Document, Skip
from strata_core.corpus.sources.text import TextPart
from strata_core.corpus.splits import document_hash, split_of
from strata_core.corpus.text.encoders import Encoder, FastEncoder, ReferenceEncoder, WordMemoryEncoder
from strata_core.corpus.text.tokenizer import TextTokenizer, check_tokenizer

_LEAST_CHECKED_CHARACTERS = 256


class BackendRefusal(Exception):
    """The fast backend cannot be used with this tokenizer; `str()` says why."""


class Records(Protocol):
    """A piece of a source that gives documents."""

    @property
    def size_bytes(self) -> int:
        """How much of the source it is."""

    def documents(self, text_key: str) -> Iterable[Document | Skip]:
        """Each record's document, or why it has none."""


@dataclass(frozen=True)
class EncodingSettings:
    """What a worker has to know.

    Attributes:
        tokenizer_json: the tokenizer, as it has passed the checks.
        backend: "fast", "tokenizers", or "reference" for the tokenizers library with nothing around it.
        text_key: the key of the text in a JSON Lines record.
        val_fraction: the share of documents to hold out.
    """

    tokenizer_json: bytes
    backend: str
    text_key: str
    val_fraction: float


@dataclass(frozen=True)
class Job:
    """Something to encode: whole documents, or a part of one.

    Attributes:
        records: where the documents come from; empty for a part.
        part: a part of a document too large to be handled at once.
        checked_characters: how much of the text the reference encodes as well, to be compared.
    """

    records: tuple[Records, ...] = ()
    part: TextPart | None = None
    checked_characters: int = 0


@dataclass(frozen=True)
class EncodedDocuments:
    """Documents of one split: ids [tokens] with end-of-text after each, lengths [documents], UTF-8 bytes of all."""

    ids: npt.NDArray[np.unsignedinteger]
    lengths: npt.NDArray[np.int64]
    text_bytes: int


@dataclass(frozen=True)
class Encoded:
    """What became of a job.

    Attributes:
        splits: the documents, by split.
        part: the tokens of a part, whose document's split is not known yet.
        skips: the records that gave no document, in order.
        literal_special_tokens: how often the text spelled a special token.
        lossy: beginnings of the documents that the tokenizer does not give back.
        disagreement: how the encoder differs from the reference; nothing else can be relied on then.
    """

    splits: dict[str, EncodedDocuments] = field(default_factory=dict)
    part: npt.NDArray[np.unsignedinteger] | None = None
    skips: tuple[Skip, ...] = ()
    literal_special_tokens: int = 0
    lossy: tuple[str, ...] = ()
    disagreement: str | None = None


class JobEncoder:
    """Encodes jobs under fixed settings.

    Raises:
        BackendRefusal: the fast backend does not take the tokenizer.
    """

    def __init__(self, settings: EncodingSettings) -> None:
        self._settings = settings
        self._tokenizer = check_tokenizer(settings.tokenizer_json, shown="tokenizer.json")
        self._dtype = np.dtype(DTYPES[smallest_dtype(self._tokenizer.vocab_size)])
        self._end_of_text = self._dtype.type(self._tokenizer.end_of_text_id)
        self._special = re.compile("|".join(map(re.escape, self._tokenizer.special_tokens)))
        self._reference = ReferenceEncoder(self._tokenizer)
        self._encoder: Encoder = self._reference
        if settings.backend == "fast":
            self._encoder = _fast_encoder(self._tokenizer)
        elif settings.backend == "tokenizers" and self._tokenizer.is_byte_level:
            self._encoder = WordMemoryEncoder(self._tokenizer)

    def encode(self, job: Job) -> Encoded:
        """Does a job."""
        if job.part is not None:
            return self._encode_part(job.part, job.checked_characters)
        documents: list[Document] = []
        skips: list[Skip] = []
        for records in job.records:
            for found in records.documents(self._settings.text_key):
                if isinstance(found, Skip):
                    skips.append(found)
                else:
                    documents.append(found)
        if not documents:
            return Encoded(skips=tuple(skips))
        texts = [document.text for document in documents]
        ids, lengths = self._encoder.encode(texts)
        return Encoded(
            splits=self._by_split(documents, ids, lengths),
            skips=tuple(skips),
            literal_special_tokens=self._count_literals(texts),
            lossy=() if self._tokenizer.is_byte_level else self._lossy(texts, ids, lengths),
            disagreement=self._disagreement(texts, job.checked_characters),
        )

    def _encode_part(self, part: TextPart, checked_characters: int) -> Encoded:
        ids, _ = self._encoder.encode([part.text])
        tokens = ids.astype(self._dtype)
        return Encoded(
            part=np.append(tokens, self._end_of_text) if part.last else tokens,
            literal_special_tokens=self._count_literals([part.text]),
            disagreement=self._disagreement([part.text], checked_characters),
        )

    def _by_split(
        self, documents: list[Document], ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]
    ) -> dict[str, EncodedDocuments]:
        fraction = self._settings.val_fraction
        splits = np.array([split or split_of(document_hash(utf8).digest(), fraction) for _, utf8, split in documents])
        text_bytes = np.array([len(utf8) for _, utf8, _ in documents])
        tokens = np.insert(ids.astype(self._dtype), np.cumsum(lengths), self._end_of_text)
        lengths = lengths + 1
        found = {}
        for split in np.unique(splits).tolist():
            chosen = splits == split
            chosen_tokens = tokens[np.repeat(chosen, lengths)]
            found[split] = EncodedDocuments(chosen_tokens, lengths[chosen], int(text_bytes[chosen].sum()))
        return found

    def _count_literals(self, texts: list[str]) -> int:
        if len(self._tokenizer.special_tokens) == 1:
            return sum(text.count(self._tokenizer.special_tokens[0]) for text in texts)
        return sum(len(self._special.findall(text)) for text in texts)

    def _lossy(self, texts: list[str], ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> tuple[str, ...]:
        by_text = [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]
        decoded = self._tokenizer.tokenizer.decode_batch(by_text, skip_special_tokens=False)
        return tuple(text[:60] for text, back in zip(texts, decoded, strict=True) if text != back)

    def _disagreement(self, texts: list[str], checked_characters: int) -> str | None:
        if self._encoder is self._reference or not checked_characters:
            return None
        sample = _beginnings(texts, checked_characters)
        ids, lengths = self._encoder.encode(sample)
        wanted_ids, wanted_lengths = self._reference.encode(sample)
        if np.array_equal(lengths, wanted_lengths) and np.array_equal(ids, wanted_ids):
            return None
        return f"its ids differ from those of the tokenizers library in a sample that begins {sample[0][:40]!r}"


def _fast_encoder(tokenizer: TextTokenizer) -> FastEncoder:
    try:
        return FastEncoder(tokenizer)
    except ImportError as error:
        raise BackendRefusal(f"gigatoken cannot be imported: {error}") from None
    except (RuntimeError, ValueError) as error:
        raise BackendRefusal(f"gigatoken does not take this tokenizer: {str(error).splitlines()[0]}") from None


def _beginnings(texts: list[str], most_characters: int) -> list[str]:
    """The beginnings of some texts, spread over all of them."""
    each = max(_LEAST_CHECKED_CHARACTERS, most_characters // len(texts))
    step = -(-len(texts) * each // most_characters)
    return [text[:each] for text in texts[::step]]

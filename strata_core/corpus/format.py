"""What `corpus.json` says about a corpus directory, and the names of the files beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from strata_core.corpus.treebanks.labels import LABEL_KINDS, WORD_LABEL_KINDS
from strata_core.errors import DataError
from strata_core.files import write_file
from strata_core.manifest.canonical import parse_json

FORMAT_VERSION = 1
CORPUS_JSON = "corpus.json"
TOKENIZER_JSON = "tokenizer.json"
SKIPPED_JSONL = "skipped.jsonl"
FINDINGS_JSONL = "findings.jsonl"
TRAIN = "train"
VAL = "val"
TEST = "test"
SPLITS = (TRAIN, VAL, TEST)
STRUCTURE_FOLDER = "structure"
KINDS = ("text", "annotated")
DTYPES = {"uint16": "<u2", "uint32": "<u4"}
"""Names of token types in `corpus.json`, and numpy's name for their little-endian form."""

_Value = TypeVar("_Value")


def smallest_dtype(vocab_size: int) -> str:
    """The narrowest token type that holds every id below `vocab_size`."""
    return "uint16" if vocab_size <= 1 << 16 else "uint32"


def shard_name(split: str, number: int) -> str:
    """The name of a shard without its suffix: tokens lie in `.bin`, document offsets in `.idx`."""
    return f"{split}-{number:05d}"


@dataclass(frozen=True)
class ShardInfo:
    """One shard: `name`.bin holds `tokens` ids, `name`.idx the start of each of `documents` and the end, as uint64."""

    name: str
    tokens: int
    documents: int


@dataclass(frozen=True)
class SplitInfo:
    """One split. `bytes` counts the UTF-8 bytes of its documents; `tokens` includes each document's end-of-text."""

    documents: int = 0
    tokens: int = 0
    bytes: int = 0
    shards: tuple[ShardInfo, ...] = ()


@dataclass(frozen=True)
class SourceInfo:
    """One file that was read: its name relative to the input given, its size in bytes and SHA-256 as it lay there."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class TokenizerInfo:
    """Where the tokenizer came from.

    Attributes:
        trained: learned from this corpus, or taken as given.
        requested_vocab_size: asked of the training, None for a tokenizer taken as given.
        training_bytes: UTF-8 bytes of the text it was learned from, 0 for a tokenizer taken as given.
    """

    trained: bool
    requested_vocab_size: int | None
    training_bytes: int


@dataclass(frozen=True)
class StructureInfo:
    """The annotated sentences of a corpus.

    Attributes:
        counts: for each split how many sentences, words, tokens (of the sentences), multiword_tokens, empty_nodes,
            unannotated_words (without a head), sentences_with_roles, predicates and arguments there are.
        labels: for each kind of label (labels.LABEL_KINDS, and those of WORD_LABEL_KINDS that are annotated) how often
            each occurs in all splits together, in the order of the labels' numbers.
        findings: how many faults, doubts and notes (findings.SEVERITIES) there were, by kind.
    """

    counts: Mapping[str, Mapping[str, int]]
    labels: Mapping[str, Mapping[str, int]]
    findings: Mapping[str, int] = field(default_factory=dict)

    def total(self, name: str) -> int:
        """One of the counts, summed over the splits."""
        return sum(counts[name] for counts in self.counts.values())


@dataclass(frozen=True)
class CorpusInfo:
    """The content of `corpus.json`. Nothing in it depends on the clock, the machine or the number of workers.

    Attributes:
        kind: "text", or "annotated" where there are annotated sentences too.
        documents, tokens, bytes: sums over the splits.
        vocab_size: the largest token id plus one.
        dtype: "uint16" or "uint32", the little-endian type of the tokens in the shards.
        end_of_text, end_of_text_id: the token that ends every document.
        tokenizer: where the tokenizer came from.
        val_fraction: the share of documents asked for in "val".
        splits: "train" and "val", and "test" where a file's name says so.
        sources: what was read, in reading order.
        skipped: how many records were left out, by reason.
        literal_special_tokens: how often text spelled a special token, which was encoded as ordinary text.
        lossy_documents: how many documents the tokenizer does not give back exactly.
        structure: the annotated sentences; None, and no key in the file, where there are none.
    """

    kind: str
    documents: int
    tokens: int
    bytes: int
    vocab_size: int
    dtype: str
    end_of_text: str
    end_of_text_id: int
    tokenizer: TokenizerInfo
    val_fraction: float
    splits: Mapping[str, SplitInfo]
    sources: tuple[SourceInfo, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)
    literal_special_tokens: int = 0
    lossy_documents: int = 0
    structure: StructureInfo | None = None

    def write(self, folder: Path) -> None:
        """Writes `corpus.json`; equal values give equal bytes.

        Raises:
            StorageError: the file system refused.
        """
        content = {"format_version": FORMAT_VERSION, **asdict(self)}
        if self.structure is None:
            del content["structure"]
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        write_file(folder / CORPUS_JSON, text.encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> CorpusInfo:
        """Reads `corpus.json`. Keys of later additions are passed over.

        Raises:
            DataError: absent, not JSON, of another format version or kind, or a value of the wrong type.
        """
        path = folder / CORPUS_JSON
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
        found = _Fields(parse_json(data, source=str(path)), str(path))
        version = found.take("format_version", int)
        if version != FORMAT_VERSION:
            raise DataError(
                f"{path}: format_version is {version}; this program reads {FORMAT_VERSION}",
                hint="use the release of strata that wrote it, or prepare the corpus again",
            )
        kind = found.take("kind", str)
        if kind not in KINDS:
            raise DataError(
                f"{path}: kind is {kind!r}, which is not {' or '.join(KINDS)}",
                hint="strata train-lm takes corpora of text, strata train-graph those of graphs",
            )
        dtype = found.take("dtype", str)
        if dtype not in DTYPES:
            raise DataError(f"{path}: dtype is {dtype!r}, not one of {', '.join(DTYPES)}")
        tokenizer = found.inner("tokenizer")
        splits = found.inner("splits")
        return cls(
            kind=kind,
            documents=found.take("documents", int),
            tokens=found.take("tokens", int),
            bytes=found.take("bytes", int),
            vocab_size=found.take("vocab_size", int),
            dtype=dtype,
            end_of_text=found.take("end_of_text", str),
            end_of_text_id=found.take("end_of_text_id", int),
            tokenizer=TokenizerInfo(
                tokenizer.take("trained", bool),
                tokenizer.optional("requested_vocab_size", int),
                tokenizer.take("training_bytes", int),
            ),
            val_fraction=float(found.take("val_fraction", int, float)),
            splits={name: _read_split(splits.inner(name)) for name in (TRAIN, VAL, *splits.present(TEST))},
            sources=tuple(
                SourceInfo(item.take("name", str), item.take("size", int), item.take("sha256", str))
                for item in found.items("sources")
            ),
            skipped=dict(found.take("skipped", dict)),
            literal_special_tokens=found.take("literal_special_tokens", int),
            lossy_documents=found.take("lossy_documents", int),
            structure=_read_structure(found.inner("structure")) if kind == "annotated" else None,
        )


def _read_split(found: _Fields) -> SplitInfo:
    return SplitInfo(
        documents=found.take("documents", int),
        tokens=found.take("tokens", int),
        bytes=found.take("bytes", int),
        shards=tuple(
            ShardInfo(item.take("name", str), item.take("tokens", int), item.take("documents", int))
            for item in found.items("shards")
        ),
    )


def _read_structure(found: _Fields) -> StructureInfo:
    counts, labels = found.inner("counts"), found.inner("labels")
    return StructureInfo(
        counts={split: counts.tally(split) for split in (TRAIN, VAL, *counts.present(TEST))},
        labels={kind: labels.tally(kind) for kind in (*LABEL_KINDS, *labels.present(*WORD_LABEL_KINDS))},
        findings=found.tally("findings"),
    )


class _Fields:
    """A JSON object whose values are taken with a check of their type."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise DataError(f"{where}: not a JSON object")
        self._value = value
        self._where = where

    def take(self, key: str, *kinds: type[_Value]) -> _Value:
        value = self._value.get(key)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise DataError(f"{self._where}: {key} is {value!r}, not {names}", hint="prepare the corpus again")
        return value

    def optional(self, key: str, kind: type[_Value]) -> _Value | None:
        return None if self._value.get(key) is None else self.take(key, kind)

    def inner(self, key: str) -> _Fields:
        return _Fields(self.take(key, dict), f"{self._where}: {key}")

    def present(self, *keys: str) -> list[str]:
        return [key for key in keys if key in self._value]

    def tally(self, key: str) -> dict[str, int]:
        counts = self.inner(key)
        return {name: counts.take(name, int) for name in counts._value}

    def items(self, key: str) -> list[_Fields]:
        return [_Fields(item, f"{self._where}: {key}[{at}]") for at, item in enumerate(self.take(key, list))]

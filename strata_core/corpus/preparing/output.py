"""What encoding has produced so far: shards, the list of skipped records, and counts."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from strata_core.corpus.format import DTYPES, SKIPPED_JSONL, SplitInfo, smallest_dtype
from strata_core.corpus.sources.records import EMPTY, Skip
from strata_core.corpus.sources.text import TextPart
from strata_core.corpus.splits import document_hash, split_of
from strata_core.corpus.text.encoding import Encoded
from strata_core.corpus.text.shards import ShardWriter
from strata_core.errors import DataError
from strata_core.files import storage_errors


class CorpusOutput:
    """Takes the results of encoding, in reading order, into a folder.

    Args:
        folder: where shards and the list of skipped records go.
        work: where a document lies while its end is not known.
        splits, vocab_size, val_fraction, shard_tokens: of the corpus.
        on_error: "stop" raises at the first bad record, "skip" lists it.
        names: for each name used in messages the one that goes into files.

    Attributes:
        skipped: how many records gave no document, by reason.
        first_skips: the first few bad ones.
        literal_special_tokens: how often text spelled a special token.
        lossy_documents: how many documents the tokenizer does not give back.
        first_lossy: the beginning of the first of those.
    """

    _SKIPS_KEPT = 5

    def __init__(
        self,
        folder: Path,
        work: Path,
        *,
        splits: Sequence[str],
        vocab_size: int,
        val_fraction: float,
        shard_tokens: int,
        on_error: str,
        names: Mapping[str, str],
    ) -> None:
        self.skipped: Counter[str] = Counter()
        self.first_skips: list[Skip] = []
        self.literal_special_tokens = 0
        self.lossy_documents = 0
        self.first_lossy = ""
        self._token_bytes = np.dtype(DTYPES[smallest_dtype(vocab_size)]).itemsize
        self._writers = {
            split: ShardWriter(folder, split, token_bytes=self._token_bytes, shard_tokens=shard_tokens)
            for split in splits
        }
        self._val_fraction = val_fraction
        self._on_error = on_error
        self._names = names
        self._skip_list_path = folder / SKIPPED_JSONL
        self._skip_list: BinaryIO | None = None
        self._parts = _DocumentInParts(work / "document")

    def add(self, part: TextPart | None, encoded: Encoded) -> None:
        """Takes the result of a job, with the part of a document that the job was about.

        Raises:
            DataError: a bad record, where those are not to be skipped.
            StorageError: the file system refused.
        """
        self.literal_special_tokens += encoded.literal_special_tokens
        self.lossy_documents += len(encoded.lossy)
        self.first_lossy = self.first_lossy or next(iter(encoded.lossy), "")
        for skip in encoded.skips:
            self.skip(skip)
        for split, documents in encoded.splits.items():
            self._writers[split].add_documents(documents.ids, documents.lengths, documents.text_bytes)
        if part is not None:
            self._add_part(part, encoded)

    def skip(self, skip: Skip) -> None:
        """Takes a record that gives no document, or an annotated sentence that is left out.

        Raises:
            DataError: it is a bad one, where those are not to be skipped.
            StorageError: the file system refused.
        """
        if skip.reason != EMPTY and self._on_error == "stop":
            raise DataError(f"{skip.place}: {skip.detail}", hint="--on-error skip leaves out such records")
        self.skipped[skip.reason] += 1
        if skip.reason != EMPTY and len(self.first_skips) < self._SKIPS_KEPT:
            self.first_skips.append(skip)
        source = self._names[skip.source]
        line = {"source": source, "line": skip.line, "reason": skip.reason, "detail": skip.detail}
        if skip.sent_id is not None:
            line["sent_id"] = skip.sent_id
        with storage_errors(self._skip_list_path):
            if self._skip_list is None:
                self._skip_list = open(self._skip_list_path, "wb")  # noqa: SIM115
            self._skip_list.write(json.dumps(line).encode() + b"\n")

    def finish(self) -> dict[str, SplitInfo]:
        """Completes the files and says what is in them.

        Raises:
            StorageError: the file system refused.
        """
        if self._skip_list is not None:
            with storage_errors(self._skip_list_path):
                self._skip_list.close()
        return {split: writer.finish() for split, writer in self._writers.items()}

    def discard(self) -> None:
        """Closes and removes the files. What the file system says to that is no news: the reason is on its way."""
        for file in (self._skip_list, self._parts):
            if file is not None:
                with contextlib.suppress(OSError):
                    file.close()
        self._skip_list_path.unlink(missing_ok=True)
        for writer in self._writers.values():
            writer.discard()

    def _add_part(self, part: TextPart, encoded: Encoded) -> None:
        if part.fault is not None:
            self.skip(part.fault)
            self._parts.restart()
            return
        assert encoded.part is not None
        self._parts.append(encoded.part.tobytes(), part.text.encode())
        if part.last:
            split = split_of(self._parts.hash.digest(), self._val_fraction)
            path = self._parts.complete()
            tokens = path.stat().st_size // self._token_bytes
            self._writers[split].add_document_file(path, tokens, self._parts.text_bytes)
            self._parts.restart()


class _DocumentInParts:
    """A document that comes in parts: its tokens wait in a file until its whole text, and so its split, is known."""

    def __init__(self, path: Path) -> None:
        self.text_bytes = 0
        self.hash = document_hash()
        self._path = path
        self._file: BinaryIO | None = None

    def append(self, tokens: bytes, utf8: bytes) -> None:
        self.text_bytes += len(utf8)
        self.hash.update(utf8)
        with storage_errors(self._path):
            if self._file is None:
                self._file = open(self._path, "wb")  # noqa: SIM115
            self._file.write(tokens)

    def complete(self) -> Path:
        """The file, with all tokens in it."""
        with storage_errors(self._path):
            self.close()
        return self._path

    def restart(self) -> None:
        """Ready for the next document."""
        self.close()
        self.text_bytes = 0
        self.hash = document_hash()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

"""Token shards: documents appended to files of bounded size, each with an index of document offsets."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from strata_core.corpus.format import ShardInfo, SplitInfo, shard_name
from strata_core.files import storage_errors


class ShardWriter:
    """Writes the documents of one split.

    A document lies in one shard; a shard is closed once it holds `shard_tokens` or more.

    Args:
        folder: where the shards go.
        split: "train" or "val".
        token_bytes: size of one token on disk.
        shard_tokens: tokens after which a shard is closed.
    """

    def __init__(self, folder: Path, split: str, *, token_bytes: int, shard_tokens: int) -> None:
        self._folder = folder
        self._split = split
        self._token_bytes = token_bytes
        self._shard_tokens = shard_tokens
        self._shards: list[ShardInfo] = []
        self._bytes = 0
        self._tokens_here = 0
        self._documents_here = 0
        self._tokens_file: BinaryIO | None = None
        self._offsets_file: BinaryIO | None = None

    def add_documents(
        self, ids: npt.NDArray[np.unsignedinteger], lengths: npt.NDArray[np.int64], text_bytes: int
    ) -> None:
        """Appends documents.

        Args:
            ids: [tokens], all documents one after another, in the shards' type.
            lengths: [documents], tokens of each.
            text_bytes: UTF-8 bytes of all of them.

        Raises:
            StorageError: the file system refused.
        """
        self._bytes += text_bytes
        while lengths.size:
            ends = self._tokens_here + np.cumsum(lengths)
            documents = min(int(np.searchsorted(ends, self._shard_tokens)) + 1, lengths.size)
            tokens = int(ends[documents - 1]) - self._tokens_here
            tokens_file = self._open_shard()
            with storage_errors(self._path(".bin")):
                tokens_file.write(ids[:tokens].data)
            self._count(ends[:documents])
            ids, lengths = ids[tokens:], lengths[documents:]

    def add_document_file(self, path: Path, tokens: int, text_bytes: int) -> None:
        """Appends one document whose `tokens` lie in a file, in the shards' type.

        Raises:
            StorageError: the file system refused.
        """
        self._bytes += text_bytes
        tokens_file = self._open_shard()
        with open(path, "rb") as source, storage_errors(self._path(".bin")):
            shutil.copyfileobj(source, tokens_file, 1 << 20)
        self._count(np.array([self._tokens_here + tokens]))

    def finish(self) -> SplitInfo:
        """Closes the last shard and says what was written.

        Raises:
            StorageError: the file system refused.
        """
        self._close_shard()
        return SplitInfo(
            documents=sum(shard.documents for shard in self._shards),
            tokens=sum(shard.tokens for shard in self._shards),
            bytes=self._bytes,
            shards=tuple(self._shards),
        )

    def discard(self) -> None:
        """Closes and removes the files. What the file system says to that is no news: the reason is on its way."""
        for file in (self._tokens_file, self._offsets_file):
            if file is not None:
                with contextlib.suppress(OSError):
                    file.close()
        for path in self._folder.glob(f"{self._split}-*"):
            path.unlink()

    def _path(self, suffix: str) -> Path:
        return self._folder / (shard_name(self._split, len(self._shards)) + suffix)

    def _open_shard(self) -> BinaryIO:
        if self._tokens_file is None:
            with storage_errors(self._path(".bin")):
                self._tokens_file = open(self._path(".bin"), "wb")  # noqa: SIM115
                self._offsets_file = open(self._path(".idx"), "wb")  # noqa: SIM115
                self._offsets_file.write(bytes(8))
        return self._tokens_file

    def _count(self, ends: npt.NDArray[np.int64]) -> None:
        assert self._offsets_file is not None
        with storage_errors(self._path(".idx")):
            self._offsets_file.write(ends.astype("<u8").data)
        self._tokens_here = int(ends[-1])
        self._documents_here += len(ends)
        if self._tokens_here >= self._shard_tokens:
            self._close_shard()

    def _close_shard(self) -> None:
        if self._tokens_file is None or self._offsets_file is None:
            return
        with storage_errors(self._path(".bin"), wanted_bytes=self._tokens_here * self._token_bytes):
            self._tokens_file.close()
        with storage_errors(self._path(".idx")):
            self._offsets_file.close()
        name = shard_name(self._split, len(self._shards))
        self._shards.append(ShardInfo(name, self._tokens_here, self._documents_here))
        self._tokens_file = self._offsets_file = None
        self._tokens_here = self._documents_here = 0

"""A corpus directory read back: token ids by position, from memory-mapped shards."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from strata_core.corpus.corpus_folder import corpus_folder
from strata_core.corpus.format import (
    CORPUS_JSON,
    DTYPES,
    STRUCTURE_FOLDER,
    TOKENIZER_JSON,
    CorpusInfo,
    ShardInfo,
    SplitInfo,
)
from strata_core.corpus.treebanks.structure_reading import StructureReader, read_labels
from strata_core.errors import DataError
from strata_core.manifest import Manifest


class TokenSplit:
    """The tokens of one split, as one sequence over all of its shards.

    Documents stand one after another, each followed by the end-of-text token.
    """

    def __init__(self, folder: Path, info: SplitInfo, *, dtype: str, vocab_size: int) -> None:
        self.n_tokens = info.tokens
        self.n_documents = info.documents
        self.n_bytes = info.bytes
        self._vocab_size = vocab_size
        self._shards = info.shards
        self._token_starts = [0, *accumulate(shard.tokens for shard in info.shards)]
        self._document_starts = [0, *accumulate(shard.documents for shard in info.shards)]
        self._ids = _Mapped(folder, ".bin", DTYPES[dtype], info.shards)
        self._offsets = _Mapped(folder, ".idx", "<u8", info.shards)

    def tokens(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """The ids at positions start <= position < stop of the split.

        Returns:
            A fresh int64 array of shape [stop - start].

        Raises:
            DataError: an id that the vocabulary does not have; the message names shard, offset and id.
            IndexError: positions outside 0 <= start <= stop <= n_tokens.
        """
        if not 0 <= start <= stop <= self.n_tokens:
            raise IndexError(f"tokens {start}..{stop} of a split of {self.n_tokens}")
        result = np.empty(stop - start, dtype=np.int64)
        shard = bisect_right(self._token_starts, start) - 1
        filled = 0
        while filled < len(result):
            inside = start + filled - self._token_starts[shard]
            count = min(len(result) - filled, self._shards[shard].tokens - inside)
            result[filled : filled + count] = self._ids[shard][inside : inside + count]
            self._check_ids(result[filled : filled + count], shard, inside)
            filled += count
            shard += 1
        return result

    def document(self, index: int) -> npt.NDArray[np.int64]:
        """The ids of one document, in the order they were read, without its end-of-text token.

        Raises:
            DataError: as `tokens`, or document offsets that make no sense.
            IndexError: no such document.
        """
        if not 0 <= index < self.n_documents:
            raise IndexError(f"document {index} of a split of {self.n_documents}")
        shard = bisect_right(self._document_starts, index) - 1
        inside = index - self._document_starts[shard]
        start, stop = (int(offset) for offset in self._offsets[shard][inside : inside + 2])
        if not start < stop <= self._shards[shard].tokens:
            raise DataError(
                f"{self._offsets.path(shard)}: document {inside} goes from {start} to {stop}",
                hint="strata verify-manifest tells what has changed; prepare the corpus again",
            )
        base = self._token_starts[shard]
        return self.tokens(base + start, base + stop - 1)

    def _check_ids(self, ids: npt.NDArray[np.int64], shard: int, inside: int) -> None:
        if ids.size and int(ids.max()) >= self._vocab_size:
            at = int(np.argmax(ids >= self._vocab_size))
            raise DataError(
                f"{self._ids.path(shard)}: the token at offset {inside + at} is {int(ids[at])}, "
                f"outside the vocabulary of {self._vocab_size}",
                hint="strata verify-manifest tells what has changed; prepare the corpus again",
            )


class _Mapped:
    """The files of one suffix, mapped when they are first needed."""

    def __init__(self, folder: Path, suffix: str, dtype: str, shards: Sequence[ShardInfo]) -> None:
        self._paths = [folder / (shard.name + suffix) for shard in shards]
        self._dtype = np.dtype(dtype)
        self._arrays: list[npt.NDArray[np.unsignedinteger] | None] = [None] * len(self._paths)

    def __getitem__(self, shard: int) -> npt.NDArray[np.unsignedinteger]:
        array = self._arrays[shard]
        if array is None:
            try:
                array = np.memmap(self._paths[shard], dtype=self._dtype, mode="r")
            except OSError as error:
                raise DataError(f"{self._paths[shard]}: cannot be read: {error.strerror or error}") from error
            self._arrays[shard] = array
        return array

    def path(self, shard: int) -> Path:
        return self._paths[shard]


@dataclass(frozen=True)
class Corpus:
    """An open corpus directory.

    Attributes:
        path: the directory.
        info: the content of its `corpus.json`.
        digest: of its manifest, 64 hexadecimal digits; this is what runs name as their parent.
    """

    path: Path
    info: CorpusInfo
    digest: str

    @property
    def vocab_size(self) -> int:
        """The largest token id plus one."""
        return self.info.vocab_size

    @property
    def end_of_text_id(self) -> int:
        """The id that ends every document."""
        return self.info.end_of_text_id

    @property
    def tokenizer_path(self) -> Path:
        """The tokenizer, in the Hugging Face `tokenizers` format."""
        return self.path / TOKENIZER_JSON

    def split(self, name: str) -> TokenSplit:
        """The tokens of "train" or "val", or of "test" in a corpus that has one.

        Raises:
            KeyError: another name.
        """
        return TokenSplit(self.path, self.info.splits[name], dtype=self.info.dtype, vocab_size=self.vocab_size)

    def structure(self, split: str) -> StructureReader:
        """The annotated sentences of a split.

        Raises:
            KeyError: another split than the corpus has.
            DataError: the corpus has no annotated sentences, or they are not those that `corpus.json` counts.
        """
        if self.info.structure is None:
            raise DataError(
                f"{self.path}: a corpus of kind {self.info.kind!r}: it has no annotated sentences",
                hint="strata prepare-corpus takes them from CoNLL-U files",
            )
        counts = self.info.structure.counts[split]
        folder = self.path / STRUCTURE_FOLDER
        reader = StructureReader(folder / split, read_labels(folder))
        if reader.counts != counts:
            raise DataError(
                f"{folder / split}: its counts are not those of {CORPUS_JSON}",
                hint="strata verify-manifest tells what has changed; prepare the corpus again",
            )
        return reader

    def decoder(self) -> Callable[[Sequence[int]], str]:
        """A function from token ids to the text they stand for, special tokens included.

        Raises:
            DataError: the tokenizer cannot be read.
        """
        from strata_core.corpus.text.tokenizer import read_tokenizer

        tokenizer = read_tokenizer(self.tokenizer_path).tokenizer
        return lambda ids: tokenizer.decode(list(ids), skip_special_tokens=False)


def open_corpus(path: str | os.PathLike[str]) -> Corpus:
    """Opens a corpus directory. Sizes of its files are checked, their content is not hashed.

    Raises:
        UsageError: there is nothing at `path`.
        DataError: not a corpus this program reads, a file is missing or has another size than `corpus.json` says.
    """
    folder = corpus_folder(path)
    info = CorpusInfo.read(folder)
    token_bytes = np.dtype(DTYPES[info.dtype]).itemsize
    for split in info.splits.values():
        sums = (sum(shard.tokens for shard in split.shards), sum(shard.documents for shard in split.shards))
        if (split.tokens, split.documents) != sums:
            raise DataError(f"{folder / CORPUS_JSON}: a split's counts are not the sums over its shards")
        for shard in split.shards:
            _check_size(folder / f"{shard.name}.bin", shard.tokens * token_bytes)
            _check_size(folder / f"{shard.name}.idx", (shard.documents + 1) * 8)
    corpus = Corpus(path=folder, info=info, digest=Manifest.read(folder).digest)
    if info.structure is not None:
        for name in info.structure.counts:
            corpus.structure(name)
    return corpus


def _check_size(path: Path, wanted_bytes: int) -> None:
    try:
        found_bytes = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", hint="the corpus is not whole: prepare it again") from error
    if found_bytes != wanted_bytes:
        raise DataError(
            f"{path}: {found_bytes:,} bytes where {CORPUS_JSON} promises {wanted_bytes:,}",
            hint="the corpus is not whole: prepare it again",
        )

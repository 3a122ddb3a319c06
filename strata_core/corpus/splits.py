"""Which split a document belongs to: by its content alone, or as the name of its file says."""

from __future__ import annotations

import hashlib
import re

from strata_core.corpus.format import TEST, TRAIN, VAL

_HASH_BYTES = 8
_NAMES = {"train": TRAIN, "dev": VAL, "val": VAL, "valid": VAL, "test": TEST}
_NAMED = re.compile(rf"(?:.*[-_./])?({'|'.join(_NAMES)})(?:\.[^-_./]+){{0,2}}", re.DOTALL)


def document_hash(utf8: bytes = b"") -> hashlib.blake2b:
    """The hash that decides a document's split, begun with some of its bytes."""
    return hashlib.blake2b(utf8, digest_size=_HASH_BYTES)


def split_of(digest: bytes, val_fraction: float) -> str:
    """The split of a document, by its content alone: "val" for about `val_fraction` of all documents."""
    return VAL if int.from_bytes(digest, "big") < val_fraction * 2.0 ** (8 * _HASH_BYTES) else TRAIN


def named_split(name: str) -> str | None:
    """The split that a treebank file's name tells by the end of its stem, as in en_ewt-ud-dev.conllu; None: none."""
    match = _NAMED.fullmatch(name.lower())
    return _NAMES[match[1]] if match else None

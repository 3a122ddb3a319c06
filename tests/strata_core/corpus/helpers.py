"""Small inputs and slow, obvious ways to read a corpus back, for the tests of this room."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import zstandard
from tokenizers import Tokenizer, pre_tokenizers

from strata_core.observer import Observer

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
END_OF_TEXT_ID = 256


def byte_tokenizer_json() -> dict:
    """Byte values as ids, and the end of text as 256: a document has as many tokens as bytes, and one."""
    # GPT-2's table of visible characters for bytes, worked out from its definition (encoder.py of the GPT-2 release).
    visible = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    characters = {byte: chr(byte) for byte in visible} | {byte: chr(256 + at) for at, byte in enumerate(hidden)}
    assert sorted(characters.values()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special_token("<|endoftext|>", END_OF_TEXT_ID)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {characters[byte]: byte for byte in range(256)},
            "merges": [],
        },
    }


def special_token(content: str, number: int) -> dict:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": content, **flags}


def word_tokenizer_json(words: int) -> dict:
    """A word-level vocabulary w0, w1, ... with the end of text behind the last word."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special_token("<|endoftext|>", words)],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {f"w{n}": n for n in range(words)}, "unk_token": "w0"},
    }


def write_jsonl(path: Path, texts: Iterable[str]) -> Path:
    path.write_bytes(b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts))
    return path


def write_compressed(path: Path, text: str) -> Path:
    """A text file, compressed as its suffix says."""
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(path.suffix, bytes)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pack(text.encode()))
    return path


class Warnings(Observer):
    """Keeps what is warned about."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def warning(self, text: str) -> None:
        self.told.append(text)


def shard_ids(corpus: Path, name: str) -> list[int]:
    """All ids of one shard, unpacked one by one."""
    code = {"uint16": "H", "uint32": "I"}[json.loads((corpus / "corpus.json").read_text())["dtype"]]
    return [number for (number,) in struct.iter_unpack("<" + code, (corpus / f"{name}.bin").read_bytes())]


def documents_of(corpus: Path) -> dict[str, list[str]]:
    """Every document of each split as text, by the offsets on disk and the tokenizers library alone."""
    info = json.loads((corpus / "corpus.json").read_text())
    tokenizer = Tokenizer.from_str((corpus / "tokenizer.json").read_text())
    found: dict[str, list[str]] = {}
    for split, facts in info["splits"].items():
        found[split] = []
        for shard in facts["shards"]:
            ids = shard_ids(corpus, shard["name"])
            offsets = [at for (at,) in struct.iter_unpack("<Q", (corpus / f"{shard['name']}.idx").read_bytes())]
            assert offsets[0] == 0
            assert offsets[-1] == len(ids) == shard["tokens"]
            assert len(offsets) - 1 == shard["documents"]
            for start, stop in pairwise(offsets):
                assert ids[stop - 1] == info["end_of_text_id"]
                assert info["end_of_text_id"] not in ids[start : stop - 1]
                found[split].append(tokenizer.decode(ids[start : stop - 1], skip_special_tokens=False))
    return found


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

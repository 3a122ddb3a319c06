"""Tokenizers: byte-level BPE learned from text, or any tokenizer.json, checked before it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.errors import DataError, UsageError
from strata_core.manifest.canonical import parse_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_TEXT = "<|endoftext|>"
SMALLEST_VOCAB_SIZE = 257
"""The 256 bytes and the end of a document."""

_LARGEST_ID = 2**31 - 1


@dataclass(frozen=True)
class TextTokenizer:
    """A tokenizer that has passed the checks.

    Attributes:
        data: its tokenizer.json.
        tokenizer: ready to encode: no truncation, no padding, and text that spells a special token is text.
        vocab_size: the largest id plus one.
        end_of_text_id: the id of the token that ends a document, `END_OF_TEXT` in every corpus of ours.
        special_tokens: what must not be taken for a control token where text spells it.
        is_byte_level: every text is given back exactly, and a token never reaches across the start of white space.
    """

    data: bytes
    tokenizer: Tokenizer
    vocab_size: int
    end_of_text_id: int
    special_tokens: tuple[str, ...]
    is_byte_level: bool


def check_vocab_size(vocab_size: int) -> None:
    """Refuses a vocabulary that no tokenizer can have.

    Raises:
        UsageError: it has no room for the bytes and the end of text, or for its ids in 31 bits.
    """
    if not SMALLEST_VOCAB_SIZE <= vocab_size <= _LARGEST_ID + 1:
        raise UsageError(
            f"a vocabulary of {vocab_size} cannot be: 256 bytes and {END_OF_TEXT} have to be in it",
            hint=f"the least is {SMALLEST_VOCAB_SIZE}, the most {_LARGEST_ID + 1}",
        )


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> bytes:
    """Learns a byte-level BPE (Sennrich et al. 2016; bytes and pre-tokens as in GPT-2) and returns its tokenizer.json.

    The result depends on the texts alone. It has fewer than `vocab_size` tokens where the texts hold no more pairs.

    Raises:
        UsageError: as `check_vocab_size`.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    check_vocab_size(vocab_size)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)  # type: ignore[assignment]
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(iter(texts), trainer)
    return tokenizer.to_str(pretty=True).encode()


def read_tokenizer(path: Path) -> TextTokenizer:
    """Reads and checks a tokenizer.json, or the one in a folder of a model.

    Raises:
        UsageError: there is no such file.
        DataError: as `check_tokenizer`.
    """
    if path.is_dir():
        path = path / "tokenizer.json"
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file", hint="it is a tokenizer.json of Hugging Face tokenizers")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return check_tokenizer(data, shown=str(path))


def check_tokenizer(data: bytes, *, shown: str, end_of_text: str = END_OF_TEXT) -> TextTokenizer:
    """Makes a tokenizer from the bytes of a tokenizer.json.

    Raises:
        DataError: it cannot be read, two tokens share an id, `end_of_text` is absent or is something text can produce,
            or it encodes by chance (BPE dropout). `shown` names it in the message.
    """
    from tokenizers import Tokenizer

    content = parse_json(data, source=shown)
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise DataError(f"{shown}: not a tokenizer.json: it has no model")
    largest_id = _check_ids(content, shown)
    if dropout := content["model"].get("dropout"):
        raise DataError(f"{shown}: its BPE dropout is {dropout}: the same text would get other tokens each time")
    try:
        tokenizer = Tokenizer.from_str(data.decode())
    # The library raises bare Exception for whatever it does not understand.
    except Exception as error:
        raise DataError(f"{shown}: the tokenizers library does not take it: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    special_tokens = tuple(token["content"] for token in content.get("added_tokens") or () if token.get("special"))
    return TextTokenizer(
        data=data,
        tokenizer=tokenizer,
        vocab_size=largest_id + 1,
        end_of_text_id=_check_end_of_text(tokenizer, special_tokens, shown, end_of_text),
        special_tokens=special_tokens,
        is_byte_level=_is_byte_level(content),
    )


def _check_ids(content: dict[str, Any], shown: str) -> int:
    """The largest id, after a check that every token has one of its own."""
    by_id: dict[int, str] = {}
    by_content: dict[str, int] = {}
    for token, number in _tokens(content, shown):
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _LARGEST_ID:
            raise DataError(f"{shown}: the id of {token!r} is {number!r}, not a number from 0 to {_LARGEST_ID}")
        if by_id.setdefault(number, token) != token:
            raise DataError(f"{shown}: {by_id[number]!r} and {token!r} have the same id, {number}")
        if by_content.setdefault(token, number) != number:
            raise DataError(f"{shown}: {token!r} has two ids, {by_content[token]} and {number}")
    if not by_id:
        raise DataError(f"{shown}: it has no tokens")
    return max(by_id)


def _tokens(content: dict[str, Any], shown: str) -> Iterator[tuple[str, Any]]:
    vocab = content["model"].get("vocab")
    if isinstance(vocab, dict):
        yield from vocab.items()
    elif isinstance(vocab, list):
        # Unigram models: pairs of token and score, the id is the position.
        tokens = [pair[0] for pair in vocab if isinstance(pair, list) and pair and isinstance(pair[0], str)]
        repeated = [token for token, count in Counter(tokens).items() if count > 1]
        if len(tokens) != len(vocab) or repeated:
            raise DataError(f"{shown}: its vocabulary has a malformed or a repeated token {repeated[:1]}")
        yield from zip(tokens, range(len(tokens)), strict=True)
    else:
        raise DataError(f"{shown}: its model has no vocabulary")
    for token in content.get("added_tokens") or ():
        if not isinstance(token, dict) or not isinstance(token.get("content"), str):
            raise DataError(f"{shown}: an added token is {token!r}, not an object with content and id")
        yield token["content"], token.get("id")


def _check_end_of_text(tokenizer: Tokenizer, special_tokens: tuple[str, ...], shown: str, end_of_text: str) -> int:
    number = tokenizer.token_to_id(end_of_text)
    if number is None or end_of_text not in special_tokens:
        found = "is an ordinary token" if number is not None else "is not in it"
        raise DataError(
            f"{shown}: {end_of_text} {found}; documents end in it, so it has to be a special token",
            hint=f"special tokens it has: {', '.join(special_tokens[:10]) or 'none'}",
        )
    for text in (end_of_text, f" {end_of_text}", f"a {end_of_text} b"):
        if number in tokenizer.encode(text, add_special_tokens=False).ids:
            raise DataError(
                f"{shown}: text that spells {end_of_text} is encoded as its id, {number}, like the end of a document",
                hint="take the token out of the model's own vocabulary and leave it in added_tokens",
            )
    return int(number)


def _is_byte_level(content: dict[str, Any]) -> bool:
    """Whether it is a BPE over bytes with GPT-2's pre-tokens and nothing that changes or merges text."""
    from tokenizers import pre_tokenizers

    model, before, after = content["model"], content.get("pre_tokenizer") or {}, content.get("decoder") or {}
    return (
        model.get("type") == "BPE"
        and not any(model.get(key) for key in ("unk_token", "continuing_subword_prefix", "end_of_word_suffix"))
        and set(pre_tokenizers.ByteLevel.alphabet()) <= model["vocab"].keys()
        and content.get("normalizer") is None
        and before.get("type") == "ByteLevel"
        and not before.get("add_prefix_space")
        and before.get("use_regex", True)
        and after.get("type") == "ByteLevel"
        and all(token.get("special") for token in content.get("added_tokens") or ())
    )

"""The faster encoders give the ids of the `tokenizers` library."""

import importlib.util
import json
import random
import sys
from collections.abc import Callable

import numpy as np
import pytest
from tokenizers import Tokenizer

from strata_core.corpus.sources.samples import sample_documents
from strata_core.corpus.text.encoders import Encoder, FastEncoder, ReferenceEncoder, WordMemoryEncoder
from strata_core.corpus.text.tokenizer import TextTokenizer, check_tokenizer, train_tokenizer
from tests.strata_core.corpus.helpers import byte_tokenizer_json

needs_gigatoken = pytest.mark.skipif(
    importlib.util.find_spec("gigatoken") is None, reason="gigatoken (the extra `fast`) is not installed"
)
ALL = [
    pytest.param(ReferenceEncoder, id="reference"),
    pytest.param(WordMemoryEncoder, id="words"),
    pytest.param(FastEncoder, id="fast", marks=needs_gigatoken),
]
FASTER = ALL[1:]

MakeEncoder = Callable[[TextTokenizer], Encoder]


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return check_tokenizer(train_tokenizer(sample_documents("python-topics")[:30], 1000), shown="learned")


def one_by_one(tokenizer: TextTokenizer, texts: list[str]) -> list[list[int]]:
    """A tokenizer of its own, one text a call, nothing shared with the encoders."""
    library = Tokenizer.from_str(tokenizer.data.decode())
    library.encode_special_tokens = True
    return [library.encode(text, add_special_tokens=False).ids for text in texts]


def by_text(encoder: Encoder, texts: list[str]) -> list[list[int]]:
    ids, lengths = encoder.encode(texts)
    assert lengths.dtype == np.int64
    assert lengths.sum() == len(ids)
    return [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]


def random_texts(seed: int, count: int) -> list[str]:
    """Letters, digits, marks, symbols and every kind of white space, mixed so that each stands beside each."""
    generator = random.Random(seed)
    spaces = [chr(code) for code in range(sys.maxunicode) if chr(code).isspace()] + ["\u180e", "\u200b", "\ufeff"]
    letters = list("abcEst'dlvmr0129_-.,;()<|>\"\\\0\x7féß日กـ²Ⅷ٣\u0301’\U0001f40e")
    pool = spaces * 2 + [" ", "\n"] * 40 + letters * 4 + ["<|endoftext|>", "'s", "'ll", "the", " the"] * 5
    return ["".join(generator.choices(pool, k=generator.randint(1, 120))) for _ in range(count)]


@pytest.mark.parametrize("make", ALL)
def test_ids_are_those_of_the_library_called_text_by_text(make: MakeEncoder, tokenizer: TextTokenizer) -> None:
    texts = [*sample_documents("python-topics")[40:60], *random_texts(1, 2000), "", " ", "\n\n"]
    assert by_text(make(tokenizer), texts) == one_by_one(tokenizer, texts)


@pytest.mark.parametrize("make", FASTER)
def test_ids_stay_the_same_when_words_are_met_again(make: MakeEncoder, tokenizer: TextTokenizer) -> None:
    encoder = make(tokenizer)
    texts = random_texts(2, 300)
    assert by_text(encoder, texts) == by_text(encoder, texts) == one_by_one(tokenizer, texts)


def test_white_space_is_what_unicode_says_it_is() -> None:
    """Python's own white space has four characters more; the words are cut by the Unicode property."""
    white_space = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)}
    white_space |= {0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
    for code in range(0x3100):
        text = f"a{chr(code)}b"
        assert WordMemoryEncoder._WORD.findall(text) == (["a", text[1:]] if code in white_space else [text])


def test_the_memory_of_words_is_bounded(tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WordMemoryEncoder, "_MOST_BYTES", 10_000)
    encoder = WordMemoryEncoder(tokenizer)
    for start in range(0, 5000, 50):
        texts = [f"word{number} " for number in range(start, start + 50)]
        assert by_text(encoder, texts) == one_by_one(tokenizer, texts)
        assert len(encoder._memory) < 200


@pytest.mark.parametrize("make", ALL)
def test_a_spelled_special_token_is_bytes(make: MakeEncoder) -> None:
    tokenizer = check_tokenizer(json.dumps(byte_tokenizer_json()).encode(), shown="bytes")
    text = "before <|endoftext|> after"
    assert by_text(make(tokenizer), [text]) == [list(text.encode())]

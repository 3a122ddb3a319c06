"""An annotated sentence as a value, and the text that its tokens spell.

Words are numbered from 1, as in CoNLL-U; 0 stands for the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MultiwordToken:
    """A surface token that spells several words: "du" for de + le. `first` and `last` are word numbers."""

    first: int
    last: int
    form: str
    space_after: bool = True


@dataclass(frozen=True, slots=True)
class EmptyNode:
    """A node that the text does not show (CoNLL-U ID `after.index`); it is no word and has no place in the tree."""

    after: int
    index: int
    form: str
    upos: str | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """What fills a role of a predicate: `head` is the number of the argument's head word."""

    role: str
    head: int


@dataclass(frozen=True, slots=True)
class Predicate:
    """A word that has roles to fill, with its sense ("give.01")."""

    word: int
    roleset: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence; `forms`, `upos`, `heads`, `relations` and `space_after` have one entry a word.

    None stands for what is not annotated (`_`): a word without a head is no root. `predicates` is None where nobody
    looked for predicates, and empty where there are none. `lemmas`, `xpos` and `feats` have one entry a word too, or
    are None where no word has one; in `feats` "_" says that a word has no features where others have.
    `file` and `line` say where the sentence was read.
    """

    forms: tuple[str, ...]
    upos: tuple[str | None, ...]
    heads: tuple[int | None, ...]
    relations: tuple[str | None, ...]
    space_after: tuple[bool, ...]
    multiword_tokens: tuple[MultiwordToken, ...] = ()
    empty_nodes: tuple[EmptyNode, ...] = ()
    predicates: tuple[Predicate, ...] | None = None
    sent_id: str | None = None
    starts_document: bool = False
    starts_paragraph: bool = False
    file: str = ""
    line: int = 0
    lemmas: tuple[str | None, ...] | None = None
    xpos: tuple[str | None, ...] | None = None
    feats: tuple[str | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class DetokenisedText:
    """A sentence's text and, for each word, the (start, end) characters it takes there."""

    text: str
    word_spans: tuple[tuple[int, int], ...]


def surface_tokens(sentence: Sentence) -> Iterator[MultiwordToken]:
    """The tokens as the text has them, a plain word being a token of one word."""
    ranges = {token.first: token for token in sentence.multiword_tokens}
    number = 1
    while number <= len(sentence.forms):
        token = ranges.get(number)
        if token is None:
            token = MultiwordToken(number, number, sentence.forms[number - 1], sentence.space_after[number - 1])
        yield token
        number = token.last + 1


def detokenise(sentence: Sentence) -> DetokenisedText:
    """Joins the surface tokens as SpaceAfter says, without a space at the end.

    The words of a multiword token share its characters out among them where their forms spell it ("do" + "n't");
    otherwise each of them spans the whole token ("du" for de and le).
    """
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    position = 0
    for token in surface_tokens(sentence):
        end = position + len(token.form)
        words = sentence.forms[token.first - 1 : token.last]
        if "".join(words) == token.form:
            start = position
            for form in words:
                spans.append((start, start + len(form)))
                start += len(form)
        else:
            spans.extend([(position, end)] * len(words))
        pieces.append(token.form)
        position = end
        if token.space_after and token.last < len(sentence.forms):
            pieces.append(" ")
            position += 1
    return DetokenisedText("".join(pieces), tuple(spans))

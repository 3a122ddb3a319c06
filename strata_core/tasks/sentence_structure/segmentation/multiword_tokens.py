"""Multiword tokens split into their words: as a treebank has them, and by what its forms have in common."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from strata_core.errors import DataError
from strata_core.tasks.sentence_structure.token_spans import TokenSpan


class KnownForm(NamedTuple):
    """A form that is a multiword token somewhere in a treebank, all in lower case.

    Attributes:
        form: the token.
        words: what it is most often split into.
        split, whole: how often it is a multiword token, and how often one word.
    """

    form: str
    words: tuple[str, ...]
    split: int
    whole: int


class _Rule(NamedTuple):
    """How one end of a token is rewritten: what it becomes, and in how many forms it does."""

    words: tuple[str, ...]
    support: int


_LEAST_SUPPORT = 2
"""Forms that a rule has to be seen in before it is used on others."""


def count_forms(tokens: Iterable[TokenSpan], text: str) -> Counter[tuple[str, tuple[str, ...]]]:
    """How often each token of a text is split into which words, in lower case; one word for none."""
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for token in tokens:
        form = text[token.start : token.end].lower()
        found[form, tuple(word.lower() for word in token.words) if len(token.words) > 1 else (form,)] += 1
    return found


def known_multiword_tokens(counts: Counter[tuple[str, tuple[str, ...]]]) -> list[KnownForm]:
    """The multiword tokens among counted tokens, by form; the words of a form are its most frequent ones."""
    splits: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for (form, words), count in counts.items():
        if len(words) > 1:
            splits[form][words] += count
    return [
        KnownForm(
            form, max(found.items(), key=lambda item: (item[1], item[0]))[0], found.total(), counts[form, (form,)]
        )
        for form, found in sorted(splits.items())
    ]


class MultiwordSplitter:
    """Says which words a token spells.

    A form that was always split is split, one that was seen both ways and one that is unknown is where the model
    marks it. An unknown form is split by the longest rule that fits its end or its beginning.
    """

    def __init__(self, known: Sequence[KnownForm]) -> None:
        self._known = {entry.form: entry for entry in known}
        self._endings = _rules(_ending_rule(entry.form, entry.words) for entry in known)
        self._beginnings = _rules(_beginning_rule(entry.form, entry.words) for entry in known)

    def __call__(self, form: str, marked: bool) -> tuple[str, ...]:
        """The words of a token, itself alone where it is no multiword token.

        Args:
            form: the token, without white space.
            marked: whether the model takes it for a multiword token.
        """
        lower = form.lower()
        known = self._known.get(lower)
        if known is not None:
            return _with_case(known.words, form) if marked or not known.whole else (form,)
        if not marked:
            return (form,)
        words = self._by_rule(lower)
        return (form,) if words is None else _with_case(words, form)

    def _by_rule(self, form: str) -> tuple[str, ...] | None:
        for length in range(len(form) - 1, 0, -1):
            ending, beginning = self._endings.get(form[-length:]), self._beginnings.get(form[:length])
            if ending is not None and (beginning is None or ending.support >= beginning.support):
                return (form[:-length] + ending.words[0], *ending.words[1:])
            if beginning is not None:
                return (*beginning.words[:-1], beginning.words[-1] + form[length:])
        return None

    def to_list(self) -> list[list[Any]]:
        """What config.json of a checkpoint holds of it."""
        return [[entry.form, list(entry.words), entry.split, entry.whole] for entry in self._known.values()]

    @classmethod
    def from_list(cls, values: Any, source: str) -> MultiwordSplitter:
        """The inverse of `to_list`.

        Args:
            values: the list.
            source: where it stands, for the message.

        Raises:
            DataError: it is none.
        """
        try:
            return cls(
                [KnownForm(str(form), tuple(words), int(split), int(whole)) for form, words, split, whole in values]
            )
        except (TypeError, ValueError):
            raise DataError(f"{source}: multiword_tokens is no list of forms with their words and two counts") from None


def _shared_length(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _ending_rule(form: str, words: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """What of a form follows the beginning that it shares with its first word, and the words this stands for."""
    shared = _shared_length(form, words[0])
    return (form[shared:], (words[0][shared:], *words[1:])) if 0 < shared < len(form) else None


def _beginning_rule(form: str, words: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """What of a form precedes the end that it shares with its last word, and the words this stands for."""
    shared = _shared_length(form[::-1], words[-1][::-1])
    if not 0 < shared < len(form):
        return None
    return form[:-shared], (*words[:-1], words[-1][:-shared])


def _rules(found: Iterable[tuple[str, tuple[str, ...]] | None]) -> dict[str, _Rule]:
    """By the end of a form the most frequent rewriting of it, where enough forms have it."""
    counts: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for rule in found:
        if rule is not None:
            counts[rule[0]][rule[1]] += 1
    best = {end: max(words.items(), key=lambda item: (item[1], item[0])) for end, words in counts.items()}
    return {end: _Rule(words, support) for end, (words, support) in best.items() if support >= _LEAST_SUPPORT}


def _with_case(words: Sequence[str], form: str) -> tuple[str, ...]:
    """Lower-case words in the case of their token: cut from it where they spell it, else as it begins or is whole."""
    if "".join(words) == form.lower() and len(form) == len(form.lower()):
        cut, start = [], 0
        for word in words:
            cut.append(form[start : start + len(word)])
            start += len(word)
        return tuple(cut)
    if len(form) > 1 and form.isupper():
        return tuple(word.upper() for word in words)
    if form[:1].isupper():
        return (words[0][:1].upper() + words[0][1:], *words[1:])
    return tuple(words)

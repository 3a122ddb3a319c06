"""Predicates and their arguments in the columns of Universal Propositions 2, in a treebank's own file or beside it.

UP:PRED has the sense, UP:ARGHEADS `ROLE:head|...`, UP:ARGSPANS `ROLE:first-last|...`
(https://universalpropositions.github.io).
A stand-off file has these columns and the ID alone, and is joined to the treebank by `# sent_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from strata_core.corpus.findings import Finding, Report
from strata_core.corpus.treebanks.column_blocks import Block, read_blocks, require_columns
from strata_core.corpus.treebanks.sentence import Argument, Predicate, Sentence

ROLE_COLUMNS = ("UP:PRED", "UP:ARGHEADS", "UP:ARGSPANS")

_PROPBANK_ROLE = re.compile(r"((?:[CR]-)*)A(?:RG)?([0-9AM])(-.+)?")
_SPAN = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_WORD_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def normalise_role(role: str) -> str:
    """The role under its PropBank name: A0 is ARG0, AM-TMP is ARGM-TMP; R- and C- stay, other names too."""
    match = _PROPBANK_ROLE.fullmatch(role)
    return f"{match[1]}ARG{match[2]}{match[3] or ''}" if match else role


@dataclass(frozen=True, slots=True)
class RoleRow:
    """What one word's role columns hold, not yet read; None where the column is absent or `_`."""

    line: int
    roleset: str | None
    argument_heads: str | None
    argument_spans: str | None


def block_role_rows(block: Block) -> list[RoleRow]:
    """The role columns of a block's words, multiword tokens and empty nodes left out."""
    positions = {name: position for position, name in enumerate(block.columns or ())}

    def value(cells: list[str], name: str) -> str | None:
        position = positions.get(name)
        return None if position is None or cells[position] == "_" else cells[position]

    return [
        RoleRow(row.line, *(value(row.cells, name) for name in ROLE_COLUMNS))
        for row in block.rows
        if _WORD_NUMBER.fullmatch(row.cells[positions["ID"]])
    ]


def predicates_from_rows(
    rows: list[RoleRow], sentence: Sentence, *, file: str, line: int, report: Report
) -> tuple[Predicate, ...] | None:
    """Reads the role columns of a sentence's words, or reports why not and returns None.

    An argument given by its span alone is headed by the word of the span whose own head lies outside (the first such).
    `file` and `line` say where the rows' sentence begins.
    """
    predicates = []
    for word, row in enumerate(rows, 1):
        if row.roleset is None and row.argument_heads is None and row.argument_spans is None:
            continue
        try:
            if row.roleset is None:
                raise _Malformed("arguments without a predicate")
            predicates.append(Predicate(word, row.roleset, tuple(_arguments(row, sentence))))
        except _Malformed as problem:
            report(Finding("malformed-roles", file, row.line, sentence.sent_id, str(problem), line))
            return None
    return tuple(predicates)


class _Malformed(ValueError):
    """A role cell that makes no sense; the message says which."""


def _arguments(row: RoleRow, sentence: Sentence) -> Iterator[Argument]:
    n_words = len(sentence.forms)
    if row.argument_heads is not None:
        for role, head in _pairs(row.argument_heads):
            if not _WORD_NUMBER.fullmatch(head) or int(head) > n_words:
                raise _Malformed(f"argument {role}:{head} of {n_words} words")
            yield Argument(normalise_role(role), int(head))
    elif row.argument_spans is not None:
        for role, span in _pairs(row.argument_spans):
            match = _SPAN.fullmatch(span)
            if not match or not int(match[1]) <= int(match[2]) <= n_words:
                raise _Malformed(f"argument span {role}:{span} of {n_words} words")
            yield Argument(normalise_role(role), _span_head(int(match[1]), int(match[2]), sentence))


def _pairs(cell: str) -> Iterator[tuple[str, str]]:
    for item in cell.split("|"):
        role, colon, place = item.rpartition(":")
        if not colon or not role:
            raise _Malformed(f"argument {item!r} is not ROLE:place")
        yield role, place


def _span_head(first: int, last: int, sentence: Sentence) -> int:
    for word in range(first, last + 1):
        head = sentence.heads[word - 1]
        if head is not None and not first <= head <= last:
            return word
    raise _Malformed(f"span {first}-{last} has no word headed from outside; are its heads annotated?")


@dataclass(frozen=True, slots=True)
class _SentenceRoles:
    """The role columns of one sentence of a stand-off file."""

    file: str
    line: int
    rows: list[RoleRow]


class StandOffRoles:
    """The roles of any number of stand-off files by sent_id; held in memory, about as large as on disk.

    Args:
        repeated_sent_ids: those that more than one sentence of the treebank has (conllu.repeated_sent_ids): they say
            of no sentence that the roles are its own.
        report: takes the findings.
    """

    def __init__(self, *, repeated_sent_ids: frozenset[str], report: Report) -> None:
        self._sentences: dict[str, _SentenceRoles] = {}
        self._repeated_here: set[str] = set()
        self._repeated_sent_ids = repeated_sent_ids
        self._report = report
        self._used: set[str] = set()

    def read(self, lines: Iterable[bytes], *, file: str) -> None:
        """Reads a file. Broken lines, sentences without sent_id and a sent_id that occurs twice are reported.

        Args:
            lines: lines with their ends, as a file open for binary reading gives them.
            file: the file's name for findings.

        Raises:
            DataError: the file declares its columns and has no ID or UP:PRED among them.
        """
        for block in read_blocks(lines, file=file, columns=("ID", *ROLE_COLUMNS), report=self._report):
            if block.is_whole:
                require_columns(block, ("ID", "UP:PRED"), file)
                self._add(block, file)

    def join(self, sentence: Sentence) -> Sentence:
        """The sentence with the predicates that are known under its sent_id.

        A sentence of which nothing is known, that has another number of words here, or whose sent_id is not its own,
        comes back as it is: that it has no predicates is not known.
        """
        sent_id = sentence.sent_id
        found = self._sentences.get(sent_id) if sent_id is not None else None
        if found is None or sent_id is None:
            return sentence
        self._used.add(sent_id)
        if sent_id in self._repeated_sent_ids:
            detail = "no roles taken: another sentence has this sent_id"
            self._report(Finding("repeated-sent-id", sentence.file, sentence.line, sent_id, detail, sentence.line))
            return sentence
        if len(found.rows) != len(sentence.forms):
            detail = f"{len(found.rows)} words here, {len(sentence.forms)} in the treebank; no roles taken"
            self._report(Finding("roles-of-other-words", found.file, found.line, sent_id, detail, found.line))
            return sentence
        predicates = predicates_from_rows(found.rows, sentence, file=found.file, line=found.line, report=self._report)
        return replace(sentence, predicates=predicates)

    def report_unused(self) -> None:
        """Reports the roles that no sentence has taken; to be called after the last sentence."""
        for sent_id, left in self._sentences.items():
            if sent_id not in self._used:
                detail = "no sentence of the treebank takes these roles"
                self._report(Finding("roles-without-sentence", left.file, left.line, sent_id, detail, left.line))

    def _add(self, block: Block, file: str) -> None:
        sent_id = block.comment("sent_id")
        kind, detail = "malformed-roles", None
        if sent_id is None:
            detail = "roles without a sent_id to join them by"
        elif not _numbered_from_one(block):
            detail = "the words are not numbered 1, 2, 3, ..."
        elif sent_id in self._sentences or sent_id in self._repeated_here:
            kind, detail = "repeated-sent-id", f"again at line {block.line}; none of its roles are taken"
            self._sentences.pop(sent_id, None)
            self._repeated_here.add(sent_id)
        else:
            self._sentences[sent_id] = _SentenceRoles(file, block.line, block_role_rows(block))
        if detail is not None:
            self._report(Finding(kind, file, block.line, sent_id, detail, block.line))


def _numbered_from_one(block: Block) -> bool:
    position = (block.columns or ()).index("ID")
    numbers = [row.cells[position] for row in block.rows if _WORD_NUMBER.fullmatch(row.cells[position])]
    return numbers == [str(number) for number in range(1, len(numbers) + 1)]

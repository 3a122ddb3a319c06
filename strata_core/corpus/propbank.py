"""Predicates and their arguments in the columns of Universal Propositions 2, in a treebank's own file or beside it.

UP:PRED has the sense, UP:ARGHEADS `ROLE:head|...`, UP:ARGSPANS `ROLE:first-last|...`
(https://universalpropositions.github.io).
A stand-off file has these columns and the ID alone, and is joined to the treebank by `# sent_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from strata_core.corpus.column_blocks import Block, read_blocks, require_columns
from strata_core.corpus.findings import Finding, Report
from strata_core.corpus.sentence import Argument, Predicate, Sentence

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
    rows: list[RoleRow], sentence: Sentence, *, file: str, report: Report
) -> tuple[Predicate, ...] | None:
    """Reads the role columns of a sentence's words, or reports why not and returns None.

    An argument given by its span alone is headed by the word of the span whose own head lies outside (the first such).
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
            report(Finding("malformed-roles", file, row.line, sentence.sent_id, str(problem)))
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
class SentenceRoles:
    """The role columns of one sentence of a stand-off file."""

    line: int
    rows: list[RoleRow]


@dataclass(slots=True)
class RoleFile:
    """A stand-off file by sent_id; sentences whose sent_id occurs twice are not in it."""

    file: str
    sentences: dict[str, SentenceRoles]


def read_role_file(lines: Iterable[bytes], *, file: str, report: Report) -> RoleFile:
    """Reads a stand-off file; it is held in memory, about as large as on disk.

    Args:
        lines: lines with their ends, as a file open for binary reading gives them.
        file: the file's name for findings.
        report: takes a finding for each broken line, sentence without sent_id, or sent_id that occurs twice.

    Raises:
        DataError: the file declares its columns and has no ID or UP:PRED among them.
    """
    sentences: dict[str, SentenceRoles] = {}
    repeated: set[str] = set()
    for block in read_blocks(lines, file=file, columns=("ID", *ROLE_COLUMNS), report=report):
        require_columns(block, ("ID", "UP:PRED"), file)
        sent_id = block.comment("sent_id")
        if sent_id is None:
            report(Finding("malformed-roles", file, block.line, None, "roles without a sent_id to join them by"))
        elif not _numbered_from_one(block):
            report(Finding("malformed-roles", file, block.line, sent_id, "the words are not numbered 1, 2, 3, ..."))
        elif sent_id in sentences:
            first = sentences[sent_id].line
            detail = f"the sent_id of line {first} again at line {block.line}"
            report(Finding("repeated-sent-id", file, block.line, sent_id, detail))
            repeated.add(sent_id)
        else:
            sentences[sent_id] = SentenceRoles(block.line, block_role_rows(block))
    for sent_id in repeated:
        del sentences[sent_id]
    return RoleFile(file, sentences)


def _numbered_from_one(block: Block) -> bool:
    position = (block.columns or ()).index("ID")
    numbers = [row.cells[position] for row in block.rows if _WORD_NUMBER.fullmatch(row.cells[position])]
    return numbers == [str(number) for number in range(1, len(numbers) + 1)]


def join_roles(
    sentences: Iterable[Sentence], roles: RoleFile, *, repeated_sent_ids: frozenset[str], report: Report
) -> Iterator[Sentence]:
    """Gives each sentence the predicates that the stand-off file has under its sent_id.

    A sentence that the file does not have, that has another number of words there, or whose sent_id is not its own,
    keeps `predicates` None: that it has no predicates is not known.

    Args:
        sentences: of one treebank file.
        roles: its stand-off file.
        repeated_sent_ids: those that more than one sentence of the treebank file has (conllu.repeated_sent_ids).
        report: takes the findings.
    """
    used: set[str] = set()
    for sentence in sentences:
        found = roles.sentences.get(sentence.sent_id) if sentence.sent_id is not None else None
        if found is None or sentence.sent_id is None or sentence.sent_id in repeated_sent_ids:
            yield sentence
            continue
        used.add(sentence.sent_id)
        if len(found.rows) != len(sentence.forms):
            there = f"{len(sentence.forms)} in {sentence.file}:{sentence.line}"
            detail = f"{len(found.rows)} words here, {there}; no roles taken"
            report(Finding("roles-of-other-words", roles.file, found.line, sentence.sent_id, detail))
            yield sentence
            continue
        predicates = predicates_from_rows(found.rows, sentence, file=roles.file, report=report)
        yield replace(sentence, predicates=predicates)
    for sent_id, left in roles.sentences.items():
        if sent_id not in used:
            detail = "no sentence of the treebank takes these roles"
            report(Finding("roles-without-sentence", roles.file, left.line, sent_id, detail))

"""CoNLL-U read exactly: what a line's ID makes of it, the tree, and every fault by file, line and sent_id.

The format: https://universaldependencies.org/format.html, and https://universaldependencies.org/ext-format.html for
CoNLL-U Plus, where a file declares its own columns.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from strata_core.corpus.findings import Finding, Report
from strata_core.corpus.treebanks.column_blocks import Block, Row, comment_value, read_blocks, require_columns
from strata_core.corpus.treebanks.dependency_tree import tree_faults
from strata_core.corpus.treebanks.labels import NO_FEATURES
from strata_core.corpus.treebanks.misc_roles import predicates_from_misc
from strata_core.corpus.treebanks.propbank import ROLE_COLUMNS, block_role_rows, predicates_from_rows
from strata_core.corpus.treebanks.sentence import EmptyNode, MultiwordToken, Sentence, detokenise

CONLLU_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")

Fault = Callable[[int, str, str], None]
"""Reports a fault of the sentence at hand: line, kind, detail."""

_WORD_ID = re.compile(r"[1-9][0-9]{0,8}")
_RANGE_ID = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY_ID = re.compile(r"(0|[1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")
_NUMBER = re.compile(r"-?[0-9]{1,9}")


def read_conllu(lines: Iterable[bytes], *, file: str, report: Report) -> Iterator[Sentence]:
    """Streams the sentences of a CoNLL-U or CoNLL-U Plus file; those with a fault are reported and left out.

    Where a document or paragraph begins with a sentence that is left out, it begins with the next one.
    Where the file has the columns UP:PRED and UP:ARGHEADS or UP:ARGSPANS, sentences have their predicates; without them
    a sentence has those that MISC tells of (see misc_roles).

    Args:
        lines: lines with their ends, as a file open for binary reading gives them.
        file: the file's name for findings.
        report: takes each finding (see findings.SEVERITIES) before the sentence that follows it is read.

    Raises:
        DataError: the file declares its columns and has no ID or FORM among them.
    """
    first_lines: dict[str, int] = {}
    starts_document = starts_paragraph = False
    for block in read_blocks(lines, file=file, columns=CONLLU_COLUMNS, report=report):
        starts_document |= any(comment.startswith("newdoc") for comment in block.comments)
        starts_paragraph |= any(comment.startswith("newpar") for comment in block.comments)
        if not block.is_whole:
            continue
        require_columns(block, ("ID", "FORM"), file)
        sent_id = block.comment("sent_id")
        if sent_id is not None:
            first = first_lines.setdefault(sent_id, block.line)
            if first != block.line:
                detail = f"the sent_id of line {first} again at line {block.line}"
                report(Finding("repeated-sent-id", file, block.line, sent_id, detail, block.line))
        sentence = _sentence(block, file, report)
        if sentence is not None:
            yield replace(sentence, starts_document=starts_document, starts_paragraph=starts_paragraph)
            starts_document = starts_paragraph = False


def repeated_sent_ids(lines: Iterable[bytes]) -> frozenset[str]:
    """The values of `# sent_id` that a file has more than once: nothing stand-off can be joined to them."""
    seen: set[str] = set()
    repeated: set[str] = set()
    for raw in lines:
        line = raw.removeprefix(codecs.BOM_UTF8)
        if line.startswith(b"#"):
            sent_id = comment_value(line[1:].rstrip(b"\r\n").decode(errors="replace"), "sent_id")
            if sent_id is not None:
                (repeated if sent_id in seen else seen).add(sent_id)
    return frozenset(repeated)


def _sentence(block: Block, file: str, report: Report) -> Sentence | None:
    sent_id = block.comment("sent_id")
    sound = True

    def fault(line: int, kind: str, detail: str) -> None:
        nonlocal sound
        sound = False
        report(Finding(kind, file, line, sent_id, detail, block.line))

    columns = _Columns(block)
    words, multiword_tokens, empty_nodes = _by_id(block.rows, columns, fault)
    heads = [_head(row, columns, fault) for row in words]
    if not sound:
        return None
    for found in tree_faults(heads):
        fault(words[found.word - 1].line, found.kind, found.detail)
    if not sound:
        return None
    sentence = Sentence(
        forms=tuple(columns.form(row) for row in words),
        upos=tuple(columns.value(row, "UPOS") for row in words),
        heads=tuple(heads),
        relations=tuple(columns.value(row, "DEPREL") for row in words),
        space_after=tuple(columns.space_after(row) for row in words),
        multiword_tokens=tuple(multiword_tokens),
        empty_nodes=tuple(empty_nodes),
        sent_id=sent_id,
        file=file,
        line=block.line,
        lemmas=some_of(columns.value(row, "LEMMA") for row in words),
        xpos=some_of(columns.value(row, "XPOS") for row in words),
        feats=features_of(columns.value(row, "FEATS") for row in words),
    )
    _compare_text(sentence, block.comment("text"), report)
    if block.columns is not None and any(name in block.columns for name in ROLE_COLUMNS):
        predicates = predicates_from_rows(block_role_rows(block), sentence, file=file, line=block.line, report=report)
        return replace(sentence, predicates=predicates)
    return replace(sentence, predicates=predicates_from_misc(columns.value(row, "MISC") for row in words))


def some_of(values: Iterable[str | None]) -> tuple[str | None, ...] | None:
    """The values of a sentence's words; None where there is none among them."""
    found = tuple(values)
    return found if any(value is not None for value in found) else None


def features_of(values: Iterable[str | None]) -> tuple[str | None, ...] | None:
    """As `some_of`, of FEATS: where one word has features, a word without a value is one that has none."""
    found = some_of(values)
    return None if found is None else tuple(value or NO_FEATURES for value in found)


class _Columns:
    """Looks cells up by the names a block declares; a column that is not declared has no value anywhere."""

    def __init__(self, block: Block) -> None:
        self.positions = {name: position for position, name in enumerate(block.columns or ())}

    def value(self, row: Row, name: str) -> str | None:
        position = self.positions.get(name)
        if position is None or row.cells[position] == "_":
            return None
        return row.cells[position]

    def id(self, row: Row) -> str:
        return row.cells[self.positions["ID"]]

    def form(self, row: Row) -> str:
        return row.cells[self.positions["FORM"]]

    def space_after(self, row: Row) -> bool:
        misc = self.value(row, "MISC")
        return misc is None or "SpaceAfter=No" not in misc.split("|")


def _by_id(rows: list[Row], columns: _Columns, fault: Fault) -> tuple[list[Row], list[MultiwordToken], list[EmptyNode]]:
    """Sorts the rows into words, multiword tokens and empty nodes, each of which has to stand where its ID says."""
    words: list[Row] = []
    multiword_tokens: list[MultiwordToken] = []
    empty_nodes: list[EmptyNode] = []
    number = 0
    for row in rows:
        identifier = columns.id(row)
        if _WORD_ID.fullmatch(identifier):
            if int(identifier) <= number:
                fault(row.line, "word-ids", f"word {identifier} occurs twice")
            elif int(identifier) > number + 1:
                fault(row.line, "word-ids", f"word {number + 1} is missing before word {identifier}")
            number = int(identifier)
            words.append(row)
        elif match := _RANGE_ID.fullmatch(identifier):
            token = MultiwordToken(int(match[1]), int(match[2]), columns.form(row), columns.space_after(row))
            problem = _range_problem(token, number, multiword_tokens)
            if problem:
                fault(row.line, "word-ids", problem)
            multiword_tokens.append(token)
        elif match := _EMPTY_ID.fullmatch(identifier):
            node = EmptyNode(int(match[1]), int(match[2]), columns.form(row), columns.value(row, "UPOS"))
            before = empty_nodes[-1].index if empty_nodes and empty_nodes[-1].after == node.after else 0
            if node.after != number or node.index != before + 1:
                fault(row.line, "word-ids", f"empty node {identifier} is out of place after word {number}")
            empty_nodes.append(node)
        else:
            fault(row.line, "word-ids", f"ID {identifier!r} is no word, range or empty node")
    if not words:
        fault(rows[0].line, "word-ids", "no words")
    elif multiword_tokens and multiword_tokens[-1].last > number:
        token = multiword_tokens[-1]
        fault(rows[-1].line, "word-ids", f"range {token.first}-{token.last} of {number} words")
    return words, multiword_tokens, empty_nodes


def _range_problem(token: MultiwordToken, number: int, before: list[MultiwordToken]) -> str | None:
    name = f"range {token.first}-{token.last}"
    if token.first > token.last:
        return f"{name} runs backwards"
    if before and token.first <= before[-1].last:
        return f"{name} overlaps range {before[-1].first}-{before[-1].last}"
    if token.first != number + 1:
        return f"{name} is out of place after word {number}"
    return None


def _head(row: Row, columns: _Columns, fault: Fault) -> int | None:
    cell = columns.value(row, "HEAD")
    if cell is None:
        return None
    if not _NUMBER.fullmatch(cell):
        fault(row.line, "head-not-a-number", f"head {cell!r}")
        return None
    return int(cell)


def _compare_text(sentence: Sentence, text: str | None, report: Report) -> None:
    if text is None:
        return
    spelt = detokenise(sentence).text
    if spelt != text:
        same = [one == other for one, other in zip(spelt, text, strict=False)]
        where = same.index(False) if False in same else len(same)
        there = slice(where, where + 20)
        detail = f"the tokens spell {spelt[there]!r} where # text has {text[there]!r} (character {where})"
        report(Finding("text-differs", sentence.file, sentence.line, sentence.sent_id, detail, sentence.line))

"""CoNLL-2009 read: dependency trees with predicates in one column and, for each predicate in turn, a column of roles.

Columns (Hajič et al. 2009): ID FORM LEMMA PLEMMA POS PPOS FEAT PFEAT HEAD PHEAD DEPREL PDEPREL FILLPRED PRED APRED1 ...
There are no comments, no multiword tokens and no word on spaces, so tokens are joined by one space each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from strata_core.corpus.findings import Finding, Report
from strata_core.corpus.treebanks.column_blocks import Block, read_blocks
from strata_core.corpus.treebanks.conllu import features_of, some_of
from strata_core.corpus.treebanks.dependency_tree import tree_faults
from strata_core.corpus.treebanks.propbank import normalise_role
from strata_core.corpus.treebanks.sentence import Argument, Predicate, Sentence

FORM, LEMMA, POS, FEATURES, HEAD, RELATION, PREDICATE, FIRST_ROLE = 1, 2, 4, 6, 8, 10, 13, 14

_NUMBER = re.compile(r"-?[0-9]{1,9}")


def read_conll2009(lines: Iterable[bytes], *, file: str, report: Report) -> Iterator[Sentence]:
    """Streams the sentences of a CoNLL-2009 file; those with a fault are reported and left out.

    Args:
        lines: lines with their ends, as a file open for binary reading gives them.
        file: the file's name for findings.
        report: takes each finding before the sentence that follows it is read.
    """
    for block in read_blocks(lines, file=file, columns=None, report=report):
        if not block.is_whole:
            continue
        faults = _block_faults(block) or _head_faults(block)
        for line, kind, detail in faults:
            report(Finding(kind, file, line, None, detail, block.line))
        if not faults:
            yield _sentence(block, file)


def _block_faults(block: Block) -> list[tuple[int, str, str]]:
    """Each row has its number, and as many columns as the sentence has predicates to fill roles of."""
    width = max(len(row.cells) for row in block.rows)
    if width < FIRST_ROLE:
        return [(block.rows[0].line, "column-count", f"{width} columns, at least {FIRST_ROLE} expected")]
    n_predicates = sum(len(row.cells) > PREDICATE and row.cells[PREDICATE] != "_" for row in block.rows)
    due = FIRST_ROLE + n_predicates
    faults = []
    for number, row in enumerate(block.rows, 1):
        if len(row.cells) != due:
            detail = f"{len(row.cells)} columns, {due} expected with {n_predicates} predicates"
            faults.append((row.line, "column-count", detail))
        if row.cells[0] != str(number):
            faults.append((row.line, "word-ids", f"ID {row.cells[0]!r} where {number} is due"))
    return faults


def _head_faults(block: Block) -> list[tuple[int, str, str]]:
    faults = [
        (row.line, "head-not-a-number", f"head {row.cells[HEAD]!r}")
        for row in block.rows
        if row.cells[HEAD] != "_" and not _NUMBER.fullmatch(row.cells[HEAD])
    ]
    return faults or [
        (block.rows[fault.word - 1].line, fault.kind, fault.detail) for fault in tree_faults(_heads(block))
    ]


def _heads(block: Block) -> list[int | None]:
    return [None if row.cells[HEAD] == "_" else int(row.cells[HEAD]) for row in block.rows]


def _sentence(block: Block, file: str) -> Sentence:
    def values(column: int) -> tuple[str | None, ...]:
        return tuple(None if row.cells[column] == "_" else row.cells[column] for row in block.rows)

    predicates: list[Predicate] = []
    for word, roleset in enumerate(values(PREDICATE), 1):
        if roleset is not None:
            column = FIRST_ROLE + len(predicates)
            arguments = [
                Argument(normalise_role(role), head) for head, role in enumerate(values(column), 1) if role is not None
            ]
            predicates.append(Predicate(word, roleset, tuple(arguments)))
    return Sentence(
        forms=tuple(row.cells[FORM] for row in block.rows),
        upos=values(POS),
        heads=tuple(_heads(block)),
        relations=values(RELATION),
        space_after=(True,) * len(block.rows),
        predicates=tuple(predicates),
        file=file,
        line=block.line,
        lemmas=some_of(values(LEMMA)),
        feats=features_of(values(FEATURES)),
    )

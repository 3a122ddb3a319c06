"""New annotation laid over the lines of a CoNLL-U file, of which everything else stays as it is, byte for byte."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from strata_core.corpus.treebanks.column_blocks import COLUMN_DECLARATION, comment_value
from strata_core.corpus.treebanks.conllu import CONLLU_COLUMNS
from strata_core.corpus.treebanks.conllu_writing import WRITTEN_ROLE_COLUMNS
from strata_core.corpus.treebanks.misc_roles import (
    ARGUMENTS_ATTRIBUTE,
    PREDICATE_ATTRIBUTE,
    escape,
    misc_with,
    role_attributes,
)
from strata_core.corpus.treebanks.propbank import ROLE_COLUMNS
from strata_core.corpus.treebanks.sentence import Sentence

_WORD_ID = re.compile(r"[1-9][0-9]*")


def overlay(
    lines: Sequence[bytes], sentences: Sequence[Sentence], starts: Sequence[int], *, plus: bool
) -> Iterator[bytes]:
    """The lines of the file with the annotation of these sentences in their rows.

    A word's UPOS is replaced where the sentence has one; HEAD where it has one, and DEPREL with it; and what told of
    roles where the sentence has predicates. LEMMA and XPOS are filled where a word has none, FEATS in sentences in
    which no word has any: elsewhere a word without them is one that has no features. Comments, blank lines, multiword
    tokens, empty nodes and all other cells stay. A file of CoNLL-U has ten columns: what an input has in further ones
    goes to MISC there, roles as `Pred` and `Args`, others by the column's name. A last blank line is added where it is
    missing.

    Args:
        lines: of a file that `read_conllu` finds no fault in, with their ends.
        sentences: all of the file's.
        starts: the place in `lines` where each begins.
        plus: write CoNLL-U Plus: the input's columns, those of CoNLL-U, and roles in columns of their own.
    """
    if not lines:
        return
    mark = codecs.BOM_UTF8 if lines[0].startswith(codecs.BOM_UTF8) else b""
    bare = [lines[0].removeprefix(mark), *lines[1:]]
    given = _declared(bare[0])
    has_roles = any(sentence.predicates is not None for sentence in sentences)
    layout = _Layout(given or CONLLU_COLUMNS, plus=plus, has_roles=has_roles)
    header, replaced = _header(bare, given, layout)
    yield mark + header
    begins = dict(zip(starts, sentences, strict=True))
    rows: _Rows | None = None
    line = b"\n"
    for place, line in enumerate(bare):
        if place in begins:
            rows = _Rows(begins[place], layout, bare[place : place + _row_count(bare, place)])
        if place >= replaced:
            yield line if rows is None or _is_blank(line) or line.startswith(b"#") else rows.annotated(line)
    if not line.endswith(b"\n"):
        yield b"\n"
    if not _is_blank(line):
        yield b"\n"


def _declared(first_line: bytes) -> tuple[str, ...] | None:
    if not first_line.startswith(b"#"):
        return None
    value = comment_value(first_line[1:].strip(b"\r\n").decode().strip(" "), COLUMN_DECLARATION)
    return None if value is None else tuple(value.split())


def _header(lines: Sequence[bytes], given: tuple[str, ...] | None, layout: _Layout) -> tuple[bytes, int]:
    """The declaration of columns to write, and how many of the first lines it takes the place of."""
    declaration = f"# {COLUMN_DECLARATION} = {' '.join(layout.written)}\n".encode() if layout.plus else b""
    if given is None:
        return declaration, 0
    if given == layout.written:
        return b"", 0
    stands_alone = not layout.plus and len(lines) > 1 and _is_blank(lines[1])
    return declaration, 2 if stands_alone else 1


def _row_count(lines: Sequence[bytes], start: int) -> int:
    """How many lines from this one on belong to the same sentence."""
    return next((count for count, line in enumerate(islice(lines, start, None)) if _is_blank(line)), len(lines))


def _is_blank(line: bytes) -> bool:
    return not line.removesuffix(b"\n").removesuffix(b"\r").strip(b" ")


class _Layout:
    """Which columns are read, and which are written."""

    def __init__(self, read: tuple[str, ...], *, plus: bool, has_roles: bool) -> None:
        self.read, self.plus, self.written = read, plus, CONLLU_COLUMNS
        if plus:
            wanted = (*CONLLU_COLUMNS, *(WRITTEN_ROLE_COLUMNS if has_roles else ()))
            self.written = (*read, *(name for name in wanted if name not in read))

    def row(self, cells: dict[str, str]) -> list[str]:
        """The cells to write; those that have no column go to MISC."""
        left = {name: cell for name, cell in cells.items() if name not in self.written and cell != "_"}
        if left:
            cells["MISC"] = misc_with(cells.get("MISC", "_"), dict(map(_attribute, left.items())))
        return [cells.get(name, "_") for name in self.written]


def _attribute(column: tuple[str, str]) -> tuple[str, str]:
    """A cell of a column that CoNLL-U has not, as an attribute of MISC."""
    name, cell = column
    if name == "UP:PRED":
        return PREDICATE_ATTRIBUTE, escape(cell)
    if name == "UP:ARGHEADS":
        return ARGUMENTS_ATTRIBUTE, ",".join(escape(argument) for argument in cell.split("|"))
    return name, escape(cell)


class _Rows:
    """The rows of one sentence."""

    def __init__(self, sentence: Sentence, layout: _Layout, lines: Sequence[bytes]) -> None:
        self._sentence, self._layout = sentence, layout
        self._filled = {"LEMMA": sentence.lemmas, "XPOS": sentence.xpos}
        if not any(self._cells(line).get("FEATS", "_") != "_" for line in lines if not line.startswith(b"#")):
            self._filled["FEATS"] = sentence.feats
        self._predicates = {predicate.word: predicate for predicate in sentence.predicates or ()}

    def annotated(self, line: bytes) -> bytes:
        end = line[len(line.removesuffix(b"\n").removesuffix(b"\r")) :]
        cells = self._cells(line)
        if _WORD_ID.fullmatch(cells["ID"]):
            self._annotate(cells, int(cells["ID"]))
        return "\t".join(self._layout.row(cells)).encode() + end

    def _cells(self, line: bytes) -> dict[str, str]:
        text = line.removesuffix(b"\n").removesuffix(b"\r").decode()
        return dict(zip(self._layout.read, text.split("\t"), strict=True))

    def _annotate(self, cells: dict[str, str], word: int) -> None:
        sentence, plus = self._sentence, self._layout.plus
        upos, head = sentence.upos[word - 1], sentence.heads[word - 1]
        if upos is not None:
            cells["UPOS"] = upos
        if head is not None:
            # A relation that was given says something of the head that was given.
            cells["HEAD"], cells["DEPREL"] = str(head), sentence.relations[word - 1] or "_"
        for name, values in self._filled.items():
            value = values[word - 1] if values is not None else None
            if value is not None and cells.get(name, "_") == "_":
                cells[name] = value
        if sentence.predicates is None:
            return
        predicate = self._predicates.get(word)
        cells |= {name: "_" for name in ROLE_COLUMNS if name in cells}
        cells["MISC"] = misc_with(cells.get("MISC", "_"), role_attributes(None if plus else predicate))
        if plus and predicate is not None:
            arguments = "|".join(f"{argument.role}:{argument.head}" for argument in predicate.arguments)
            cells |= {"UP:PRED": predicate.roleset, "UP:ARGHEADS": arguments or "_"}

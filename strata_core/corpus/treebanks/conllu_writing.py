"""Sentences written as CoNLL-U: DEPS and MISC but for spaces are `_`, which strata does not keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from strata_core.corpus.treebanks.conllu import CONLLU_COLUMNS
from strata_core.corpus.treebanks.sentence import Predicate, Sentence, detokenise

WRITTEN_ROLE_COLUMNS = ("UP:PRED", "UP:ARGHEADS")


def write_conllu(sentences: Iterable[Sentence], *, roles: bool = False) -> Iterator[str]:
    """The text of a CoNLL-U file, one sentence at a time, to be encoded as UTF-8.

    Args:
        sentences: what to write.
        roles: writes CoNLL-U Plus with the columns UP:PRED and UP:ARGHEADS beside the ten of CoNLL-U.
    """
    if roles:
        yield f"# global.columns = {' '.join((*CONLLU_COLUMNS, *WRITTEN_ROLE_COLUMNS))}\n"
    for sentence in sentences:
        yield "".join(f"{line}\n" for line in _comments(sentence))
        yield "".join("\t".join(cells) + "\n" for cells in _rows(sentence, roles)) + "\n"


def _comments(sentence: Sentence) -> Iterator[str]:
    if sentence.starts_document:
        yield "# newdoc"
    if sentence.starts_paragraph:
        yield "# newpar"
    if sentence.sent_id is not None:
        yield f"# sent_id = {sentence.sent_id}"
    yield f"# text = {detokenise(sentence).text}"


def _rows(sentence: Sentence, roles: bool) -> Iterator[list[str]]:
    ranges = {token.first: token for token in sentence.multiword_tokens}
    predicates = {predicate.word: predicate for predicate in sentence.predicates or ()}
    nothing = (None,) * len(sentence.forms)
    lemmas, xpos, feats = (values or nothing for values in (sentence.lemmas, sentence.xpos, sentence.feats))
    yield from _empty_rows(sentence, 0, roles)
    for number, form in enumerate(sentence.forms, 1):
        token = ranges.get(number)
        if token is not None:
            yield _cells(f"{token.first}-{token.last}", token.form, roles=roles, space_after=token.space_after)
        head = sentence.heads[number - 1]
        yield _cells(
            str(number),
            form,
            lemma=lemmas[number - 1],
            upos=sentence.upos[number - 1],
            xpos=xpos[number - 1],
            feats=feats[number - 1],
            head=None if head is None else str(head),
            relation=sentence.relations[number - 1],
            space_after=sentence.space_after[number - 1],
            roles=roles,
            predicate=predicates.get(number),
        )
        yield from _empty_rows(sentence, number, roles)


def _empty_rows(sentence: Sentence, after: int, roles: bool) -> Iterator[list[str]]:
    for node in sentence.empty_nodes:
        if node.after == after:
            yield _cells(f"{node.after}.{node.index}", node.form, upos=node.upos, roles=roles)


def _cells(
    identifier: str,
    form: str,
    *,
    roles: bool,
    lemma: str | None = None,
    upos: str | None = None,
    xpos: str | None = None,
    feats: str | None = None,
    head: str | None = None,
    relation: str | None = None,
    space_after: bool = True,
    predicate: Predicate | None = None,
) -> list[str]:
    misc = "_" if space_after else "SpaceAfter=No"
    values = [value or "_" for value in (lemma, upos, xpos, feats, head, relation)]
    cells = [identifier, form, *values, "_", misc]
    if roles:
        arguments = predicate.arguments if predicate else ()
        cells.append(predicate.roleset if predicate else "_")
        cells.append("|".join(f"{argument.role}:{argument.head}" for argument in arguments) or "_")
    return cells

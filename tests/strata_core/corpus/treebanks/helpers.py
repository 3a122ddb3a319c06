"""Small treebanks and places of real ones, for the tests of annotated corpora."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path

import pytest

from strata_core.corpus.findings import Finding
from strata_core.corpus.treebanks.conllu import read_conllu, repeated_sent_ids
from strata_core.corpus.treebanks.propbank import StandOffRoles
from strata_core.corpus.treebanks.sentence import Sentence

SHARED = Path(__file__).resolve().parents[4].parent / "shared"

MIXED = """\
# newdoc id = d1
# sent_id = s1
# text = Il parle du port.
1	Il	il	PRON	_	_	2	nsubj	_	_
2	parle	parler	VERB	_	_	0	root	_	_
3-4	du	_	_	_	_	_	_	_	_
3	de	de	ADP	_	_	5	case	_	_
4	le	le	DET	_	_	5	det	_	_
5	port	port	NOUN	_	_	2	obl	_	SpaceAfter=No
6	.	.	PUNCT	_	_	2	punct	_	_

# sent_id = s2
# text = (10 000) don't
0.1	I	I	PRON	_	_	_	_	_	_
1	(	(	PUNCT	_	_	2	punct	_	SpaceAfter=No
2	10 000	10 000	NUM	_	_	0	root	_	SpaceAfter=No
3	)	)	PUNCT	_	_	2	punct	_	_
4-5	don't	_	_	_	_	_	_	_	_
4	do	do	AUX	_	_	2	dep:x	_	_
5	n't	not	PART	_	_	_	_	_	_
5.1	go	go	VERB	_	_	_	_	_	_
5.2	there	there	_	_	_	_	_	_	_
"""
"""Multiword tokens, a space in a form, empty nodes first and last, a word without head, no last blank line."""


def read_text(text: str | bytes) -> tuple[list[Sentence], list[Finding]]:
    """The sentences of a CoNLL-U text called t.conllu, and what was found."""
    findings: list[Finding] = []
    data = text.encode() if isinstance(text, str) else text
    return list(read_conllu(data.splitlines(keepends=True), file="t.conllu", report=findings.append)), findings


def rows(*heads: str, forms: str = "abcdefgh") -> str:
    """A sentence whose words have these heads."""
    lines = [f"{n}\t{forms[n - 1]}\t_\tX\t_\t_\t{head}\tdep\t_\t_\n" for n, head in enumerate(heads, 1)]
    return "".join(lines) + "\n"


def random_tree(n_words: int, generator: random.Random) -> list[int]:
    """Heads of a random tree: each word hangs below one that was placed before it."""
    order = list(range(1, n_words + 1))
    generator.shuffle(order)
    heads = [0] * n_words
    for place, word in enumerate(order[1:], 1):
        heads[word - 1] = order[generator.randrange(place)]
    return heads


def case_file(case: str, name: str) -> bytes:
    """A file of an acceptance case."""
    path = SHARED / "cases" / case / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path.read_bytes()


def case_expected(case: str) -> dict:
    """What an acceptance case expects."""
    return json.loads(case_file(case, "expected.json"))


def real_paths(treebank: str, split: str) -> tuple[Path, list[Path]]:
    """A split of a real treebank ("EWT", "Atis", "Sequoia"), and its file of stand-off roles where it has one."""
    folder, prefix, roles = {
        "EWT": ("UD_English-EWT", "en_ewt", "PropBank-EWT/en_ewt-pb"),
        "Atis": ("UD_English-Atis", "en_atis", None),
        "Sequoia": ("UD_French-Sequoia", "fr_sequoia", "UP_French-Sequoia/fr_sequoia-up"),
    }[treebank]
    path = SHARED / "data/ud" / folder / f"{prefix}-ud-{split}.conllu"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path, [] if roles is None else [SHARED / "data/srl" / f"{roles}-{split}.conllup"]


@functools.cache
def read_real(treebank: str, split: str) -> tuple[list[Sentence], list[Finding]]:
    """A split of a real treebank with its roles, where it has any."""
    path, role_paths = real_paths(treebank, split)
    findings: list[Finding] = []
    with path.open("rb") as lines:
        repeated = repeated_sent_ids(lines)
    roles = StandOffRoles(repeated_sent_ids=repeated, report=findings.append)
    for role_path in role_paths:
        with role_path.open("rb") as lines:
            roles.read(lines, file=role_path.name)
    with path.open("rb") as lines:
        joined = [roles.join(one) for one in read_conllu(lines, file=path.name, report=findings.append)]
    roles.report_unused()
    return joined, findings

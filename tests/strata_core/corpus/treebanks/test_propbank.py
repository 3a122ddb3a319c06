"""Role columns in a treebank's own file and beside it."""

from __future__ import annotations

import pytest

from strata_core.corpus.findings import Severity
from strata_core.corpus.treebanks.conllu import read_conllu
from strata_core.corpus.treebanks.propbank import StandOffRoles, normalise_role
from strata_core.corpus.treebanks.sentence import Argument, Predicate
from strata_core.errors import DataError
from tests.strata_core.corpus.treebanks.helpers import read_real, read_text, rows

HEADER = "# global.columns = ID UP:PRED UP:ARGHEADS UP:ARGSPANS\n"


def join(treebank, *role_files, repeated=frozenset()):
    findings = []
    roles = StandOffRoles(repeated_sent_ids=repeated, report=findings.append)
    for number, text in enumerate(role_files):
        roles.read(text.encode().splitlines(keepends=True), file=f"r{number or ''}.conllup")
    sentences = read_conllu(treebank.encode().splitlines(keepends=True), file="t.conllu", report=findings.append)
    joined = [roles.join(sentence) for sentence in sentences]
    roles.report_unused()
    return joined, findings


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("A0", "ARG0"),
        ("ARG0", "ARG0"),
        ("AM-TMP", "ARGM-TMP"),
        ("ARGM-TMP", "ARGM-TMP"),
        ("R-A1", "R-ARG1"),
        ("C-AM-LOC", "C-ARGM-LOC"),
        ("C-R-A0", "C-R-ARG0"),
        ("AA", "ARGA"),
        ("A1-DSP", "ARG1-DSP"),
        ("AM", "ARGM"),
        ("V", "V"),
        ("C-V", "C-V"),
        ("AGENT", "AGENT"),
        ("AMOUNT", "AMOUNT"),
        ("Theme", "Theme"),
    ],
)
def test_role_names_are_those_of_propbank(role, name):
    assert normalise_role(role) == name


def test_stand_off_roles_are_joined_by_sent_id_in_any_order():
    treebank = "# sent_id = x\n" + rows("0", "1") + "# sent_id = y\n" + rows("0")
    roles = HEADER + "# sent_id = y\n1\tgo.01\t_\t_\n\n# sent_id = x\n1\t_\t_\t_\n2\tsee.01\tA0:1|AM-TMP:2\t_\n"
    (x, y), findings = join(treebank, roles)
    assert findings == []
    assert x.predicates == (Predicate(2, "see.01", (Argument("ARG0", 1), Argument("ARGM-TMP", 2))),)
    assert y.predicates == (Predicate(1, "go.01"),)


def test_ranges_and_empty_nodes_of_a_stand_off_file_are_no_words():
    roles = HEADER + "# sent_id = x\n1-2\t_\t_\t_\n1\t_\t_\t_\n1.1\t_\t_\t_\n2\tsee.01\tA0:1\tA0:1-1\n"
    (x,), findings = join("# sent_id = x\n" + rows("0", "1"), roles)
    assert findings == [] and x.predicates == (Predicate(2, "see.01", (Argument("ARG0", 1),)),)


def test_a_sentence_without_roles_differs_from_one_without_predicates():
    treebank = "# sent_id = x\n" + rows("0") + "# sent_id = y\n" + rows("0") + rows("0")
    (x, y, nameless), _ = join(treebank, HEADER + "# sent_id = y\n1\t_\t_\t_\n")
    assert x.predicates is None and y.predicates == () and nameless.predicates is None


def test_an_argument_given_by_its_span_is_headed_by_the_word_headed_from_outside():
    # b heads a and c within 1-3, and hangs below d: the span's head is b.
    treebank = "# sent_id = x\n" + rows("2", "4", "2", "0")
    empty = "".join(f"{word}\t_\t_\n" for word in (1, 2, 3))
    roles = f"# global.columns = ID UP:PRED UP:ARGSPANS\n# sent_id = x\n{empty}4\tgo.01\tA1:1-3\n"
    (x,), _ = join(treebank, roles)
    assert x.predicates == (Predicate(4, "go.01", (Argument("ARG1", 2),)),)


def test_other_words_under_a_sent_id_take_no_roles():
    (x,), (finding,) = join("# sent_id = x\n" + rows("0", "1"), HEADER + "# sent_id = x\n1\tgo.01\t_\t_\n")
    assert x.predicates is None
    assert (finding.kind, finding.file, finding.line) == ("roles-of-other-words", "r.conllup", 1)
    assert finding.severity is Severity.NOTE and "1 words here, 2 in the treebank" in finding.detail


def test_roles_are_never_given_to_one_of_two_sentences_with_one_sent_id():
    treebank = "# sent_id = x\n" + rows("0") + "# sent_id = x\n" + rows("0")
    roles = HEADER + "# sent_id = x\n1\tgo.01\t_\t_\n"
    sentences, findings = join(treebank, roles, repeated=frozenset({"x"}))
    assert [sentence.predicates for sentence in sentences] == [None, None]
    assert {finding.kind for finding in findings} == {"repeated-sent-id"}
    (x,), findings = join("# sent_id = x\n" + rows("0"), roles + "\n# sent_id = x\n1\t_\t_\t_\n")
    assert x.predicates is None
    assert [(finding.kind, finding.line) for finding in findings] == [("repeated-sent-id", 5)]


def test_roles_may_lie_in_several_files():
    treebank = "# sent_id = x\n" + rows("0") + "# sent_id = y\n" + rows("0")
    x, y = (HEADER + f"# sent_id = {name}\n1\tgo.0{name}\t_\t_\n" for name in "xy")
    sentences, findings = join(treebank, y, x)
    assert findings == []
    assert [sentence.predicates for sentence in sentences] == [(Predicate(1, "go.0x"),), (Predicate(1, "go.0y"),)]
    sentences, findings = join(treebank, y, x, x, x)
    assert [sentence.predicates for sentence in sentences] == [None, (Predicate(1, "go.0y"),)]
    assert [(finding.kind, finding.file) for finding in findings] == [
        ("repeated-sent-id", "r2.conllup"),
        ("repeated-sent-id", "r3.conllup"),
    ]


def test_roles_that_no_sentence_takes_are_noted():
    _, (finding,) = join("# sent_id = x\n" + rows("0"), HEADER + "# sent_id = z\n1\t_\t_\t_\n")
    assert (finding.kind, finding.sent_id) == ("roles-without-sentence", "z")


@pytest.mark.parametrize(
    ("cells", "detail"),
    [
        ("go.01\tA0:3\t_", "argument A0:3 of 2 words"),
        ("go.01\tA0:0\t_", "argument A0:0 of 2 words"),
        ("go.01\tA0\t_", "argument 'A0' is not ROLE:place"),
        ("go.01\t_\tA0:2-1", "argument span A0:2-1 of 2 words"),
        ("go.01\t_\tA0:1-x", "argument span A0:1-x"),
        ("_\tA0:1\t_", "arguments without a predicate"),
    ],
)
def test_malformed_roles_are_named_and_the_sentence_kept_without(cells, detail):
    (x,), (finding,) = join("# sent_id = x\n" + rows("0", "1"), HEADER + f"# sent_id = x\n1\t{cells}\n2\t_\t_\t_\n")
    assert x.predicates is None
    assert (finding.kind, finding.line, finding.severity) == ("malformed-roles", 3, Severity.DOUBT)
    assert detail in finding.detail


@pytest.mark.parametrize(
    "block", ["1\t_\t_\t_\n", "# sent_id = x\n2\t_\t_\t_\n", "# sent_id = x\n1\t_\t_\t_\n1\t_\t_\t_\n"]
)
def test_stand_off_blocks_without_sent_id_or_order_are_malformed(block):
    _, findings = join("", HEADER + block)
    assert [finding.kind for finding in findings] == ["malformed-roles"]


def test_a_stand_off_file_without_predicates_is_refused():
    with pytest.raises(DataError, match="no column UP:PRED"):
        join("", "# global.columns = ID UP:ARGHEADS\n1\t_\n")


def test_role_columns_in_the_treebank_itself_are_read():
    text = "# global.columns = ID FORM UP:PRED UP:ARGHEADS\n1\ta\tgo.01\tA0:2\n2\tb\t_\t_\n\n1\ta\tgo.01\tA0:9\n"
    (first, second), (finding,) = read_text(text)
    assert first.predicates == (Predicate(1, "go.01", (Argument("ARG0", 2),)),)
    assert second.predicates is None and finding.kind == "malformed-roles"


@pytest.mark.parametrize(
    ("treebank", "split", "with_roles", "predicates", "arguments"),
    [
        ("EWT", "dev", 1970, 4977, 9600),
        ("EWT", "test", 2059, 4799, 9345),
        # The file has 3,276 predicates and 7,398 arguments; two of its sentences have other words than the treebank's.
        ("Sequoia", "train", 2229, 3276 - 4, 7398 - 10),
        ("Sequoia", "dev", 412, 646, 1438),
        ("Sequoia", "test", 456, 609, 1437),
        pytest.param("EWT", "train", 12532, 40477, 81540, marks=pytest.mark.slow),
    ],
)
def test_real_roles_have_the_counts_of_their_release(treebank, split, with_roles, predicates, arguments):
    sentences, _ = read_real(treebank, split)
    found = [sentence.predicates for sentence in sentences if sentence.predicates is not None]
    assert len(found) == with_roles
    assert sum(map(len, found)) == predicates
    assert sum(len(predicate.arguments) for sentence in found for predicate in sentence) == arguments
    roles = {argument.role for sentence in found for predicate in sentence for argument in predicate.arguments}
    assert {"ARG0", "ARG1", "ARGM-TMP", "R-ARG0"} <= roles and "A0" not in roles

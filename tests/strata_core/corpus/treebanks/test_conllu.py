"""CoNLL-U read exactly, faults by file, line and sent_id."""

from __future__ import annotations

import pytest

from strata_core.corpus.findings import Severity, refuse_findings
from strata_core.corpus.treebanks.conllu import read_conllu, repeated_sent_ids
from strata_core.corpus.treebanks.sentence import EmptyNode, MultiwordToken, detokenise
from strata_core.errors import DataError
from tests.strata_core.corpus.treebanks.helpers import MIXED, case_expected, case_file, read_real, read_text, rows


def kinds(findings):
    return [finding.kind for finding in findings]


def test_multiword_tokens_and_empty_nodes_are_no_words():
    (first, second), findings = read_text(MIXED)
    assert findings == []
    assert first.forms == ("Il", "parle", "de", "le", "port", ".")
    assert first.heads == (2, 0, 5, 5, 2, 2)
    assert first.multiword_tokens == (MultiwordToken(3, 4, "du"),)
    assert second.empty_nodes == (EmptyNode(0, 1, "I", "PRON"), EmptyNode(5, 1, "go", "VERB"), EmptyNode(5, 2, "there"))


def test_an_underscore_is_no_annotation_and_never_the_root():
    (_, second), _ = read_text(MIXED)
    assert second.heads == (2, 0, 2, 2, None)
    assert second.relations == ("punct", "root", "punct", "dep:x", None)


def test_an_underscore_form_is_a_word():
    (sentence,), findings = read_text("1\t_\t_\tSYM\t_\t_\t0\troot\t_\t_\n")
    assert sentence.forms == ("_",) and findings == []


def test_sentences_know_where_they_stand_in_file_and_document():
    (first, second), _ = read_text(MIXED)
    assert (first.file, first.line, first.sent_id, first.starts_document) == ("t.conllu", 1, "s1", True)
    assert (second.line, second.sent_id, second.starts_document) == (12, "s2", False)


@pytest.mark.parametrize(
    "change",
    [lambda data: data.replace(b"\n", b"\r\n"), lambda data: b"\xef\xbb\xbf" + data, lambda data: data + b"\n\n\n"],
    ids=["carriage returns", "byte order mark", "blank lines"],
)
def test_line_ends_a_byte_order_mark_and_blank_lines_change_nothing(change):
    assert read_text(change(MIXED.encode())) == read_text(MIXED)


def test_only_line_feeds_end_a_line():
    forms = "x\u2028y", "x\u0085y", "x\u00a0y"
    text = "".join(f"{n}\t{form}\t_\tX\t_\t_\t{n - 1}\tdep\t_\t_\n" for n, form in enumerate(forms, 1))
    findings = []
    lines = [line + b"\n" for line in text.encode().split(b"\n")[:-1]]
    (sentence,) = read_conllu(lines, file="t", report=findings.append)
    assert sentence.forms == forms and findings == []


def test_text_that_the_tokens_do_not_spell_is_noted():
    (sentence,), (finding,) = read_text("# text = a  b\n" + rows("0", "1"))
    assert detokenise(sentence).text == "a b"
    assert finding.kind == "text-differs" and finding.severity is Severity.NOTE and "character 2" in finding.detail


@pytest.mark.parametrize(
    ("ids", "detail"),
    [
        (["1", "2", "4"], "word 3 is missing before word 4"),
        (["1", "1"], "word 1 occurs twice"),
        (["2-1", "1", "2"], "range 2-1 runs backwards"),
        (["1-2", "1", "2-3", "2", "3"], "range 2-3 overlaps range 1-2"),
        (["1", "1-2", "2"], "range 1-2 is out of place after word 1"),
        (["1", "2", "3-9", "3"], "range 3-9 of 3 words"),
        (["1", "2.1", "2"], "empty node 2.1 is out of place after word 1"),
        (["1", "1.2", "2"], "empty node 1.2 is out of place after word 1"),
        (["01"], "ID '01' is no word, range or empty node"),
        (["1\u0662"], "is no word, range or empty node"),
        (["1.1"], "empty node 1.1 is out of place"),
        (["9" * 5000], "is no word, range or empty node"),
    ],
)
def test_ids_out_of_order_are_faults(ids, detail):
    sentences, findings = read_text("".join(f"{i}\ta\t_\tX\t_\t_\t_\t_\t_\t_\n" for i in ids))
    assert sentences == []
    assert findings[0].kind == "word-ids" and detail in findings[0].detail


def test_a_range_of_one_word_is_accepted():
    (sentence,), findings = read_text("1-1\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" + rows("0"))
    assert findings == [] and detokenise(sentence).text == "ab"


@pytest.mark.parametrize(
    ("line", "kind", "detail"),
    [
        (b"1 boats\tboat\tNOUN\t_\t_\t0\troot\t_\t_", "column-count", "9 columns, 10 expected; is there a space"),
        (b"1\ta\ta\tX\t_\t_\t0\troot\t_\t_\tx", "column-count", "11 columns, 10 expected"),
        (b"1\t\ta\tX\t_\t_\t0\troot\t_\t_", "empty-column", "column FORM is empty"),
        (b"1\t\xff\ta\tX\t_\t_\t0\troot\t_\t_", "not-utf8", "byte 0xff at offset 2"),
        (b"1\ta\ta\tX\t_\t_\tx\troot\t_\t_", "head-not-a-number", "head 'x'"),
        (b"1\ta\ta\tX\t_\t_\t" + b"9" * 5000 + b"\troot\t_\t_", "head-not-a-number", "head '999"),
    ],
)
def test_broken_lines_are_faults_of_their_sentence_alone(line, kind, detail):
    good = rows("0").encode()
    sentences, findings = read_text(good + b"# sent_id = bad\n" + line + b"\n\n" + good)
    assert len(sentences) == 2
    (finding,) = findings
    assert (finding.kind, finding.line, finding.sent_id, finding.severity) == (kind, 4, "bad", Severity.FAULT)
    assert detail in finding.detail


def test_declared_columns_are_read_by_name():
    text = "# global.columns = ID HEAD FORM EXTRA\n1\t0\ta\tx\n2\t1\tb\ty\n"
    (sentence,), findings = read_text(text)
    assert findings == []
    assert (sentence.forms, sentence.heads, sentence.upos) == (("a", "b"), (0, 1), (None, None))


def test_a_file_without_forms_is_refused():
    with pytest.raises(DataError, match=r"t\.conllu: no column FORM; the file declares ID UP:PRED"):
        read_text("# global.columns = ID UP:PRED\n1\t_\n")


def test_strict_reading_names_every_fault_and_keeps_quiet_about_notes():
    text = "# sent_id = x\n" + rows("5") + "# note\n\n" + "# sent_id = y\n" + rows("1") + "# sent_id = y\n" + rows("0")
    _, findings = read_text(text)
    with pytest.raises(DataError) as refusal:
        refuse_findings(findings)
    assert refusal.value.message.startswith("3 problems")
    first, second, third = refusal.value.problems
    assert first == "t.conllu:2 (sent_id x): head-out-of-range: head 5 of 1 words"
    assert "(sent_id y): own-head" in second and "repeated-sent-id" in third
    refuse_findings([finding for finding in findings if finding.severity is Severity.NOTE])


def test_a_long_list_of_faults_is_cut():
    _, findings = read_text("".join(f"# sent_id = {n}\n" + rows("1") for n in range(50)))
    with pytest.raises(DataError, match="50 problems") as refusal:
        refuse_findings(findings)
    assert len(refusal.value.problems) == 21 and refusal.value.problems[-1] == "and 30 more"


def test_sentences_with_one_sent_id_are_kept_and_both_lines_named():
    sentences, (finding,) = read_text("# sent_id = n\n" + rows("0") + "# sent_id = n\n" + rows("0"))
    assert len(sentences) == 2
    assert finding.severity is Severity.DOUBT and "line 1 again at line 4" in finding.detail
    assert repeated_sent_ids([b"\xef\xbb\xbf# sent_id = n\n", b"#sent_id=n\r\n", b"# sent_id = m\n"]) == {"n"}


def test_a_document_whose_first_sentence_is_left_out_begins_with_the_next():
    marks = "# newdoc\n# newpar\n"
    for left_out in (rows("1"), "1\ta\n\n", "# no words\n\n"):
        first, second = read_text(marks + left_out + rows("0") + rows("0"))[0]
        assert (first.starts_document, first.starts_paragraph) == (True, True)
        assert (second.starts_document, second.starts_paragraph) == (False, False)


def test_reading_does_not_wait_for_the_end_of_the_file():
    def endless():
        while True:
            yield from rows("0", "1").encode().splitlines(keepends=True)

    sentences = read_conllu(endless(), file="endless", report=lambda finding: pytest.fail(str(finding)))
    assert [next(sentences).line for _ in range(3)] == [1, 4, 7]


def test_case_u01_multiword_token():
    expected = case_expected("U01")
    (sentence,), findings = read_text(case_file("U01", "mwt.conllu"))
    assert findings == []
    assert list(sentence.heads) == expected["heads"] and len(sentence.forms) == expected["words"]
    assert detokenise(sentence).text == expected["text for the LM"]


def test_case_u03_heads_that_are_not_annotated():
    expected = case_expected("U03")
    sentences, findings = read_text(case_file("U03", "no_heads.conllu"))
    assert findings == []
    assert [len(s.heads) - s.heads.count(None) for s in sentences] == expected["arcs supervised"]
    assert sum(sentence.heads.count(None) for sentence in sentences) == 5
    assert sum(len(sentence.forms) for sentence in sentences) == expected["words"]


def test_case_u04_broken_trees():
    expected = case_expected("U04")
    sentences, findings = read_text(case_file("U04", "trees.conllu"))
    assert [sentence.sent_id for sentence in sentences] == ["good"]
    assert {finding.sent_id: finding.detail for finding in findings} == expected["kinds"]
    assert len(findings) == expected["lenient"]["refused"]
    # By hand: the second root; the word itself; the first word of the cycle; the first word; the word with the head.
    assert [finding.line for finding in findings] == [11, 18, 26, 31, 40, 47]
    with pytest.raises(DataError, match="6 problems"):
        refuse_findings(findings)


def test_case_u06_spaces():
    (spaced,), none = read_text(case_file("U06", "space_in_form.conllu"))
    assert spaced.forms[0] == "10 000" and len(spaced.forms) == 2 and none == []
    sentences, (finding,) = read_text(case_file("U06", "space_for_tab.conllu"))
    assert sentences == [] and finding.line == 2 and finding.detail.startswith("9 columns, 10 expected")
    assert [len(s.forms) for s in read_text(case_file("U06", "nbsp.conllu"))[0]] == [1]
    assert read_text(case_file("U06", "underscore.conllu"))[0][0].forms == ("_",)
    sentences, (finding,) = read_text(case_file("U06", "eleven.conllu"))
    assert sentences == [] and finding.line == 2 and finding.detail.startswith("11 columns, 10 expected")
    declared = b"# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC NOTE\n"
    sentences, findings = read_text(declared + case_file("U06", "eleven.conllu"))
    assert len(sentences) == 1 and findings == []


def test_case_u07_odd_blocks():
    sentences, findings = read_text(case_file("U07", "comments_only.conllu"))
    assert [sentence.sent_id for sentence in sentences] == ["n1", "n2"]
    assert [(finding.kind, finding.detail.split(":")[0]) for finding in findings] == [
        ("comments-without-words", "lines 6-7"),
        ("comments-without-words", "line 16"),
    ]
    sentences, findings = read_text(case_file("U07", "dup_sent_id.conllu"))
    assert len(sentences) == 2 and kinds(findings) == ["repeated-sent-id"]
    sentences, findings = read_text(case_file("U07", "bad_ids.conllu"))
    assert [sentence.sent_id for sentence in sentences] == ["b4"]
    assert [finding.sent_id for finding in findings] == ["b1", "b2", "b3"]


@pytest.mark.parametrize(
    ("treebank", "split", "counts"),
    [
        ("EWT", "dev", (2001, 25147, 359, 4)),
        ("EWT", "test", (2077, 25094, 354, 2)),
        ("Atis", "dev", (572, 6644, 0, 0)),
        ("Atis", "test", (586, 6580, 0, 0)),
        ("Sequoia", "train", (2231, 50502, 1360, 0)),
        ("Sequoia", "dev", (412, 9999, 282, 0)),
        ("Sequoia", "test", (456, 10044, 310, 0)),
        pytest.param("EWT", "train", (12544, 204577, 2614, 37), marks=pytest.mark.slow),
        pytest.param("Atis", "train", (4274, 48655, 0, 0), marks=pytest.mark.slow),
    ],
)
def test_real_treebanks_have_the_counts_of_their_release(treebank, split, counts):
    sentences, findings = read_real(treebank, split)
    found = (
        len(sentences),
        sum(len(sentence.forms) for sentence in sentences),
        sum(len(sentence.multiword_tokens) for sentence in sentences),
        sum(len(sentence.empty_nodes) for sentence in sentences),
    )
    assert found == counts
    assert not [finding for finding in findings if finding.severity is not Severity.NOTE]


def test_a_word_without_features_has_none_where_another_word_has_some():
    text = "1\ta\tA\tX\tx\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\tN=1\t1\tdep\t_\t_\n\n"
    (sentence,), _ = read_text(text)
    assert (sentence.lemmas, sentence.xpos, sentence.feats) == (("A", None), ("x", None), ("_", "N=1"))
    (bare,), _ = read_text(text.replace("A\tX\tx", "_\tX\t_").replace("N=1", "_"))
    assert (bare.lemmas, bare.xpos, bare.feats) == (None, None, None)

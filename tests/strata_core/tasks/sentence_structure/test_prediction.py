"""Annotation of new sentences by a structured language model."""

import gzip

import numpy as np
import pytest

from strata_core.corpus.reading import open_corpus
from strata_core.corpus.treebanks.conllu import read_conllu
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.errors import DataError, UsageError
from strata_core.evaluation import structure_scores
from strata_core.inference.evaluation import evaluate_trained
from strata_core.inference.prediction import predict_file
from strata_core.launch.starting import train
from strata_core.observer import Observer
from strata_core.tasks.registry import make_task
from strata_core.tasks.sentence_structure import prediction as structure_prediction
from strata_core.training.distributed import ALONE
from strata_core.training.precision import choose_precision
from strata_core.training.task import EvaluationContext
from strata_core.training.trained import find_trained
from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, make_corpus, small_recipe


def annotated(run, file, **settings):
    text = predict_file(run, str(file), device="cpu", **settings)
    findings = []
    sentences = list(read_conllu(text.splitlines(keepends=True), file="out", report=findings.append))
    assert findings == []
    return sentences


@pytest.fixture
def validation(structured_run, tmp_path):
    """The validation sentences, and a file of them with their annotation."""
    corpus = open_corpus(structured_run.parent / "corpus")
    reader = corpus.structure("val")
    sentences = [reader.sentence(number) for number in range(len(reader))]
    file = tmp_path / "val.conllup"
    file.write_text("".join(write_conllu(sentences, roles=True)))
    return sentences, file


@pytest.fixture
def every_word_a_predicate(monkeypatch):
    """Predicates where a model that has hardly been trained would find none."""
    decode = structure_scores.decode_predicates
    monkeypatch.setattr(structure_scores, "decode_predicates", lambda scores, real: decode(scores + 100, real))


@pytest.mark.parametrize("out_name", [None, "out.conllup"])
def test_sentences_of_a_treebank_are_annotated_as_an_evaluation_annotates_them(
    structured_run, validation, out_name, every_word_a_predicate
):
    trained = find_trained(structured_run)
    corpus = open_corpus(structured_run.parent / "corpus")
    task = make_task(trained.recipe(), corpus)
    model = task.build_model()
    trained.load_into(model)
    cpu = next(model.parameters()).device
    precision = choose_precision("fp32", cpu, force=False)
    context = EvaluationContext(cpu, ALONE, precision.autocast(cpu), lambda: False, lambda done, total: None)
    reader = corpus.structure("val")
    labels = reader.labels
    sentences = annotated(structured_run, validation[1], out_name=out_name)
    assert len(sentences) == len(reader)
    for number, sentence in enumerate(sentences):
        predicted, _ = task.predict(model, reader, np.array([number]), context)
        assert sentence.forms == reader.forms(number)
        assert sentence.heads == tuple(predicted.trees[0].heads.tolist())
        assert sentence.relations == tuple(labels.name("relation", n) for n in predicted.trees[0].relations.tolist())
        assert sentence.upos == tuple(labels.name("upos", n) for n in predicted.node_types[0].tolist())
        assert [p.word for p in sentence.predicates] == predicted.predicates[0].tolist()
        assert len(sentence.predicates) == len(sentence.forms)
        roles = predicted.roles_of_predicted[0]
        for row, predicate in enumerate(sentence.predicates):
            expected = [(labels.name("role", r - 1), w) for w, r in enumerate(roles[row].tolist(), 1) if r]
            assert [(argument.role, argument.head) for argument in predicate.arguments] == expected


def test_scoring_the_file_gives_the_uas_of_the_evaluation(structured_run, validation):
    pairs = list(zip(validation[0], annotated(structured_run, validation[1]), strict=True))
    right = sum(a == b for gold, found in pairs for a, b in zip(gold.heads, found.heads, strict=True))
    words = sum(len(gold.forms) for gold, _ in pairs)
    assert right / words == pytest.approx(evaluate_trained(structured_run, device="cpu").metrics["uas"])


def test_annotation_in_the_input_makes_no_difference(structured_run, validation, tmp_path):
    bare = tmp_path / "bare.conllu"
    rows = [line.split("\t") for line in validation[1].read_text().splitlines()[1:]]
    kept = [[*row[:2], *"________", *row[9:10]] if len(row) > 1 else row for row in rows]
    bare.write_text("".join("\t".join([*row[:9], row[-1]] if len(row) > 1 else row) + "\n" for row in kept))
    assert annotated(structured_run, bare) == annotated(structured_run, validation[1])


def test_text_words_and_compressed_files_are_read(structured_run, tmp_path):
    (tmp_path / "x.txt").write_text("the dog didn't bark.\n")
    (tmp_path / "x.tok").write_text("the dog did n't bark .\n")
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(b"the dog didn't bark.\n"))
    (tmp_path / "x").write_text("the dog didn't bark.\n")
    words = ("the", "dog", "did", "n't", "bark", ".")
    for name in ("x.txt", "x.tok", "x.txt.gz"):
        (sentence,) = annotated(structured_run, tmp_path / name)
        assert sentence.forms == words
        assert sentence.heads.count(0) == 1
    assert annotated(structured_run, tmp_path / "x", format="tokens")[0].forms == ("the", "dog", "didn't", "bark.")


TREEBANK = """\
# newdoc id = d1
# meta = kept
# sent_id = a-1
# text = du chat dort
# translation = sleeps
1-2\tdu\t_\t_\t_\tTypo=Yes\t_\t_\t_\tLang=fr
1\tde\tde\tADP\tE\tA=1|B=2\t3\tcase\t3:case\tGloss=of|Pred=old|X
2\tle\tle\tDET\tD\tC=3\t3\tdet\t3:det\t_
2.1\tx\tx\tNOUN\t_\t_\t_\t_\t4:dep\tCopyOf=3
# a comment between words
3\tchat\tchat\tNOUN\tN\t_\t4\tnsubj\t4:nsubj|2.1:x\t_
4\tdort\tdormir\tVERB\tV\t_\t0\troot\t0:root\tSpaceAfter=No

"""


def unpredicted(text):
    """Each line without UPOS, HEAD, DEPREL and what MISC tells of roles."""
    rows = [line.split("\t") for line in text.splitlines()]
    for row in rows:
        if len(row) == 10:
            kept = [item for item in row[9].split("|") if not item.startswith(("Pred=", "Args="))]
            row[9] = "|".join(kept) or "_"
            if row[0].isdecimal():
                row[3] = row[6] = row[7] = ""
    return rows


def test_of_a_treebank_everything_that_is_not_predicted_comes_back(structured_run, tmp_path):
    (tmp_path / "x.conllu").write_text(TREEBANK)
    result = predict_file(structured_run, str(tmp_path / "x.conllu"), device="cpu").decode()
    assert unpredicted(result) == unpredicted(TREEBANK)
    assert "Pred=old" not in result
    assert result.endswith("\n\n")


def test_a_treebank_with_other_line_ends_and_no_last_one_stays_as_it_is(structured_run, tmp_path):
    source = "\ufeff" + TREEBANK.rstrip("\n").replace("\n", "\r\n")
    (tmp_path / "x.conllu").write_bytes(source.encode())
    result = predict_file(structured_run, str(tmp_path / "x.conllu"), device="cpu").decode()
    assert result.startswith("\ufeff# newdoc id = d1\r\n")
    assert unpredicted(result.removesuffix("\n\n")) == unpredicted(source)


def test_every_row_has_ten_columns_unless_the_result_is_called_conllup(
    structured_run, validation, every_word_a_predicate
):
    result = predict_file(structured_run, str(validation[1]), device="cpu", out_name="out.conllu").decode()
    lines = result.splitlines()
    assert {line.count("\t") for line in lines if line and not line.startswith("#")} == {9}
    assert not any("global.columns" in line for line in lines)
    assert all("Pred=Y" in line for line in lines if "\t" in line)
    result = predict_file(structured_run, str(validation[1]), device="cpu", out_name="out.conllup").decode()
    lines = result.splitlines()
    assert {line.count("\t") for line in lines if line and not line.startswith("#")} == {11}
    assert lines[0] == validation[1].read_text().splitlines()[0]
    assert "Pred=" not in result


def test_an_independent_validator_accepts_the_ten_columns(structured_run, validation, tmp_path, every_word_a_predicate):
    udtools = pytest.importorskip("udtools", reason="the validator of udtools is not installed")
    result = predict_file(structured_run, str(validation[1]), device="cpu")
    assert b"|Args=ARG" in result
    (tmp_path / "out.conllu").write_bytes(result)
    state = udtools.Validator(level=2).validate_files([str(tmp_path / "out.conllu")])
    assert state.passed()


def test_what_was_not_learned_stays_open(tmp_path):
    corpus = make_corpus(tmp_path)
    weights = ("objective.ud.node_type=1.0", "objective.lm=0.0", "batch.sentences=12", "run.max_steps=3")
    train(small_recipe(corpus, *weights), tmp_path / "run", device="cpu")
    (tmp_path / "x.txt").write_text("the dog\n")
    (sentence,) = annotated(tmp_path / "run", tmp_path / "x.txt")
    assert (sentence.heads, sentence.relations, sentence.predicates) == ((None, None), (None, None), None)
    assert None not in sentence.upos


class Notices(Observer):
    """Keeps the notices."""

    def __init__(self):
        self.texts = []

    def notice(self, text):
        self.texts.append(text)


def test_a_line_of_a_thousand_words_is_annotated_in_windows_and_said_to_be(tmp_path, every_word_a_predicate):
    longest, run = 32, tmp_path / "run"
    settings = (*ALL_WEIGHTS, f"batch.max_sentence_len={longest}", "run.max_steps=3")
    train(small_recipe(make_corpus(tmp_path), *settings), run, device="cpu")
    words = [f"w{number % 7}" for number in range(1000)]
    (tmp_path / "x.tok").write_text("the dog\n" + " ".join(words) + "\n" + " ".join(words[:longest]) + "\n")
    told = Notices()
    _, long, whole = annotated(run, tmp_path / "x.tok", observer=told)
    assert [text for text in told.texts if "windows" in text] == [
        f"1 of 3 sentences has more words than the {longest} that the model takes: annotated in windows of that "
        "length, the trees joined"
    ]
    # The reader refuses cycles and several roots; the first window is what the sentence of its words alone is.
    assert long.forms == tuple(words)
    assert (long.heads[:longest], long.relations[:longest]) == (whole.heads, whole.relations)
    assert long.upos[:longest] == whole.upos
    top = long.heads.index(0) + 1
    crossing = [
        (word // longest, head, long.relations[word])
        for word, head in enumerate(long.heads)
        if head and (head - 1) // longest != word // longest
    ]
    # The relations of the generated treebank have no parataxis.
    assert crossing == [(window, top, "dep") for window in range(1, -(-1000 // longest))]
    assert [predicate.word for predicate in long.predicates] == list(range(1, 1001))
    assert all(
        (argument.head - 1) // longest == (predicate.word - 1) // longest
        for predicate in long.predicates
        for argument in predicate.arguments
    )


def test_faults_of_the_input_are_named_by_file_and_line(structured_run, tmp_path):
    (tmp_path / "x.conllu").write_text("1\ta" + "\t_" * 8 + "\n3\tb" + "\t_" * 8 + "\n\n1\tc\n\n")
    with pytest.raises(DataError) as caught:
        predict_file(structured_run, str(tmp_path / "x.conllu"), device="cpu")
    assert [line.split(": ")[0] for line in caught.value.problems] == [
        f"{tmp_path / 'x.conllu'}:2",
        f"{tmp_path / 'x.conllu'}:4",
    ]


def test_windows_of_a_causal_model_are_counted_in_tokens(tmp_path):
    corpus = make_corpus(tmp_path)
    causal = "model.heads.reads='causal'", "objective.ud.arc=1.0", "run.max_steps=3"
    train(small_recipe(corpus, *causal), tmp_path / "run", device="cpu")
    longest = find_trained(tmp_path / "run").config["model"]["transformer"]["max_seq_len"]
    # One word, whose letters the tokenizer has never seen: it takes them byte by byte.
    long = "\u00e9" * longest
    (tmp_path / "x.tok").write_text(f"the dog\n{long}\nthe dog {long} the dog barks\n" + "dog " * 300)
    told = Notices()
    sentences = annotated(tmp_path / "run", tmp_path / "x.tok", observer=told)
    assert [len(sentence.forms) for sentence in sentences] == [2, 1, 6, 300]
    assert all(sentence.heads.count(0) == 1 for sentence in sentences)
    assert any(text.startswith(f"3 of 4 sentences have more tokens than the {longest} ") for text in told.texts)
    # the dog | long | the dog barks
    top = sentences[2].heads.index(0) + 1
    assert top in (1, 2)
    assert sentences[2].heads[2] == top
    assert sentences[2].heads[3:].count(top) == 1


def test_a_model_of_the_full_pass_reads_words_of_any_number_of_tokens(structured_run, tmp_path, monkeypatch):
    def not_needed(*_, **__):
        raise AssertionError("the causal pass is not read")

    monkeypatch.setattr(structure_prediction, "causal_tensors", not_needed)
    longest = find_trained(structured_run).config["model"]["transformer"]["max_seq_len"]
    (tmp_path / "x.tok").write_text("the " + "\u00e9" * longest + "\n")
    (sentence,) = annotated(structured_run, tmp_path / "x.tok")
    assert sentence.heads.count(0) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.txt", ""), ("x.txt", "\n \n"), ("x.tok", "\n"), ("x.conllu", ""), ("x.conllu", "\n\n")],
    ids=["empty text", "blank text", "blank words", "empty treebank", "blank treebank"],
)
def test_of_a_file_without_sentences_nothing_is_written_and_that_is_said(structured_run, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    told = Notices()
    assert predict_file(structured_run, str(tmp_path / name), device="cpu", observer=told, out_name="x.conllup") == b""
    assert f"{tmp_path / name}: there is no sentence in it; the result is empty" in told.texts


def test_what_is_no_file_of_sentences_is_refused(structured_run, tmp_path):
    (tmp_path / "x.pdf").write_text("a")
    for name in ("x.pdf", "absent.txt"):
        with pytest.raises(UsageError):
            predict_file(structured_run, str(tmp_path / name), device="cpu")
    with pytest.raises(UsageError):
        predict_file(structured_run, str(tmp_path), device="cpu", format="text")

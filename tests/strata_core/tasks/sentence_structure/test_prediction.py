"""Annotation of new sentences by a structured language model."""

import gzip

import numpy as np
import pytest

from strata_core.corpus.reading import open_corpus
from strata_core.corpus.text.tokenizer import read_tokenizer
from strata_core.corpus.treebanks.conllu import read_conllu
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.errors import DataError, UsageError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.inference.prediction import predict_file
from strata_core.launch.starting import train
from strata_core.tasks.registry import make_task
from strata_core.tasks.sentence_structure import prediction as structure_prediction
from strata_core.training.distributed import ALONE
from strata_core.training.precision import choose_precision
from strata_core.training.task import EvaluationContext
from strata_core.training.trained import find_trained
from tests.strata_core.tasks.sentence_structure.treebank_corpus import make_corpus, small_recipe


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


def test_sentences_of_a_treebank_are_annotated_as_an_evaluation_annotates_them(structured_run, validation):
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
    sentences = annotated(structured_run, validation[1])
    assert len(sentences) == len(reader)
    for number, sentence in enumerate(sentences):
        predicted, _ = task.predict(model, reader, np.array([number]), context)
        assert sentence.forms == reader.forms(number)
        assert sentence.heads == tuple(predicted.trees[0].heads.tolist())
        assert sentence.relations == tuple(labels.name("relation", n) for n in predicted.trees[0].relations.tolist())
        assert sentence.upos == tuple(labels.name("upos", n) for n in predicted.node_types[0].tolist())
        assert [p.word for p in sentence.predicates] == predicted.predicates[0].tolist()
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


def test_multiword_tokens_and_ids_are_kept_and_empty_nodes_are_left_out(structured_run, tmp_path):
    rows = ["1-2\tdu", "1\tde", "2\tle", "2.1\tx", "3\tchat"]
    text = "# sent_id = a-1\n" + "".join(row + "\t_" * 8 + "\n" for row in rows) + "\n"
    (tmp_path / "x.conllu").write_text(text)
    (sentence,) = annotated(structured_run, tmp_path / "x.conllu")
    assert sentence.sent_id == "a-1"
    assert (sentence.forms, sentence.empty_nodes) == (("de", "le", "chat"), ())
    assert [(token.first, token.last, token.form) for token in sentence.multiword_tokens] == [(1, 2, "du")]


def test_what_was_not_learned_stays_open(tmp_path):
    corpus = make_corpus(tmp_path)
    weights = ("objective.ud.node_type=1.0", "objective.lm=0.0", "batch.sentences=12", "run.max_steps=3")
    train(small_recipe(corpus, *weights), tmp_path / "run", device="cpu")
    (tmp_path / "x.txt").write_text("the dog\n")
    (sentence,) = annotated(tmp_path / "run", tmp_path / "x.txt")
    assert (sentence.heads, sentence.relations, sentence.predicates) == ((None, None), (None, None), None)
    assert None not in sentence.upos


def test_sentences_too_long_for_the_model_are_refused_by_line(structured_run, tmp_path):
    longest = find_trained(structured_run).config["model"]["transformer"]["max_seq_len"]
    (tmp_path / "x.txt").write_text("fine\n" + "word " * longest + "\n" + "word " * (longest + 1))
    with pytest.raises(DataError) as caught:
        predict_file(structured_run, str(tmp_path / "x.txt"), device="cpu")
    assert caught.value.problems == (f"{tmp_path / 'x.txt'}:3: {longest + 1} words",)


def test_faults_of_the_input_are_named_by_file_and_line(structured_run, tmp_path):
    (tmp_path / "x.conllu").write_text("1\ta" + "\t_" * 8 + "\n3\tb" + "\t_" * 8 + "\n\n1\tc\n\n")
    with pytest.raises(DataError) as caught:
        predict_file(structured_run, str(tmp_path / "x.conllu"), device="cpu")
    assert [line.split(": ")[0] for line in caught.value.problems] == [
        f"{tmp_path / 'x.conllu'}:2",
        f"{tmp_path / 'x.conllu'}:4",
    ]


def test_a_causal_model_refuses_sentences_by_their_tokens_and_by_line(tmp_path):
    corpus = make_corpus(tmp_path)
    causal = "model.heads.reads='causal'", "objective.ud.node_type=1.0", "run.max_steps=3"
    train(small_recipe(corpus, *causal), tmp_path / "run", device="cpu")
    longest = find_trained(tmp_path / "run").config["model"]["transformer"]["max_seq_len"]
    # One word, whose letters the tokenizer has never seen: it takes them byte by byte.
    long = "\u00e9" * longest
    (tmp_path / "x.tok").write_text(f"the dog\n{long}\nthe dog\nthe {long}\n")
    with pytest.raises(DataError) as caught:
        predict_file(tmp_path / "run", str(tmp_path / "x.tok"), device="cpu")
    places = [problem.rsplit(": ", 1) for problem in caught.value.problems]
    assert [place for place, _ in places] == [f"{tmp_path / 'x.tok'}:2", f"{tmp_path / 'x.tok'}:4"]
    tokenizer = read_tokenizer(corpus.tokenizer_path).tokenizer
    counts = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in (long, f"the {long}")]
    assert [told for _, told in places] == [f"{count:,} tokens" for count in counts]
    assert "more tokens than the" in caught.value.message


def test_a_model_of_the_full_pass_reads_words_of_any_number_of_tokens(structured_run, tmp_path, monkeypatch):
    def not_needed(*_, **__):
        raise AssertionError("the causal pass is not read")

    monkeypatch.setattr(structure_prediction, "causal_tensors", not_needed)
    longest = find_trained(structured_run).config["model"]["transformer"]["max_seq_len"]
    (tmp_path / "x.tok").write_text("the " + "\u00e9" * longest + "\n")
    (sentence,) = annotated(structured_run, tmp_path / "x.tok")
    assert sentence.heads.count(0) == 1


@pytest.mark.parametrize(("name", "content", "error"), [("x.txt", "\n \n", DataError), ("x.pdf", "a", UsageError)])
def test_files_without_sentences_are_refused(structured_run, tmp_path, name, content, error):
    (tmp_path / name).write_text(content)
    with pytest.raises(error):
        predict_file(structured_run, str(tmp_path / name), device="cpu")
    with pytest.raises(UsageError):
        predict_file(structured_run, str(tmp_path / "absent.txt"), device="cpu")
    with pytest.raises(UsageError):
        predict_file(structured_run, str(tmp_path), device="cpu", format="text")

"""Corpora with annotated sentences: contents, splits, roles, faults, and what may not change the result."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from strata_core.corpus.format import CorpusInfo
from strata_core.corpus.generators.treebank import synthetic_sentence
from strata_core.corpus.preparing import preparation
from strata_core.corpus.preparing.preparation import PreparationSettings, prepare_corpus, prepare_sample
from strata_core.corpus.reading import open_corpus
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.corpus.treebanks.sentence import Predicate
from strata_core.errors import DataError, UsageError
from strata_core.manifest import Manifest
from tests.strata_core.corpus.helpers import byte_tokenizer_json, documents_of, folder_bytes, write_jsonl
from tests.strata_core.corpus.preparing.test_preparation import Heard, held_out
from tests.strata_core.corpus.treebanks.helpers import MIXED, case_expected, case_file, read_text, real_paths, rows
from tests.strata_core.corpus.treebanks.test_conll2009 import GOOD

ROLES = "# global.columns = ID UP:PRED UP:ARGHEADS\n# sent_id = s1\n1\t_\t_\n2\tparler.01\tA0:1|A1:5\n" + "".join(
    f"{word}\t_\t_\n" for word in range(3, 7)
)


@pytest.fixture
def settings(tmp_path: Path) -> PreparationSettings:
    """The bytes of the text are its tokens, and nothing is held out."""
    path = tmp_path / "bytes.json"
    path.write_text(json.dumps(byte_tokenizer_json()))
    return PreparationSettings(tokenizer=path, val_fraction=0, workers=1)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def plain(sentences):
    """Sentences without the file and line they came from, which a corpus does not keep."""
    return [replace(sentence, file="", line=0) for sentence in sentences]


def structure_of(folder: Path, split: str = "train"):
    reader = open_corpus(folder).structure(split)
    return [reader.sentence(index) for index in range(len(reader))]


def test_text_and_sentences_of_a_treebank_come_back(tmp_path: Path, settings: PreparationSettings) -> None:
    prepared = prepare_corpus([write(tmp_path / "t.conllu", MIXED)], tmp_path / "out", settings)
    assert documents_of(tmp_path / "out") == {"train": ["Il parle du port. (10 000) don't"], "val": []}
    assert structure_of(tmp_path / "out") == plain(read_text(MIXED)[0])
    assert structure_of(tmp_path / "out", "val") == []
    assert prepared.info.kind == "annotated"
    assert CorpusInfo.read(tmp_path / "out") == prepared.info


def test_each_word_knows_its_tokens(tmp_path: Path, settings: PreparationSettings) -> None:
    prepare_corpus([write(tmp_path / "t.conllu", MIXED)], tmp_path / "out", settings)
    reader = open_corpus(tmp_path / "out").structure("train")
    words = []
    for index in range(2):
        arrays = reader.arrays(index)
        for start, stop in arrays.token_spans.tolist():
            words.append(bytes(arrays.tokens[start:stop].tolist()).decode())
    # By hand: a space is a token of its own here, and no word's; "du" stands for both of its words.
    assert words == ["Il", "parle", "du", "du", "port", ".", "(", "10 000", ")", "do", "n't"]
    assert bytes(reader.arrays(0).tokens.tolist()) == b"Il parle du port."


def test_counts_and_label_inventories_are_in_corpus_json(tmp_path: Path, settings: PreparationSettings) -> None:
    inputs = [write(tmp_path / "t.conllu", MIXED), write(tmp_path / "r.conllup", ROLES)]
    prepare_corpus(inputs, tmp_path / "out", settings)
    found = json.loads((tmp_path / "out" / "corpus.json").read_text())
    structure = found["structure"]
    assert structure["counts"]["train"] == {
        "sentences": 2, "words": 11, "tokens": 17 + 14, "multiword_tokens": 2, "empty_nodes": 3, "unannotated_words": 1,
        "sentences_with_roles": 1, "predicates": 1, "arguments": 2,
    }  # fmt: skip
    assert structure["labels"]["upos"] == {
        "PRON": 1, "VERB": 1, "ADP": 1, "DET": 1, "NOUN": 1, "PUNCT": 3, "NUM": 1, "AUX": 1, "PART": 1,
    }  # fmt: skip
    assert structure["labels"]["relation"]["punct"] == 3 and structure["labels"]["relation"]["root"] == 2
    assert structure["labels"]["roleset"] == {"parler.01": 1}
    assert structure["labels"]["role"] == {"ARG0": 1, "ARG1": 1}
    assert [source["name"] for source in found["sources"]] == ["t.conllu", "r.conllup"]
    assert found["sources"][1]["sha256"] == hashlib.sha256(ROLES.encode()).hexdigest()


def test_the_manifest_lists_the_arrays(tmp_path: Path, settings: PreparationSettings) -> None:
    prepare_corpus([write(tmp_path / "t.conllu", MIXED)], tmp_path / "out", settings)
    names = {entry.path for entry in Manifest.read(tmp_path / "out").files}
    assert names == folder_bytes(tmp_path / "out").keys() - {"manifest.json"}
    assert "structure/train/heads.bin" in names


def test_names_of_files_tell_their_split(tmp_path: Path) -> None:
    inputs = [
        write(tmp_path / f"t-{split}.conllu", f"# sent_id = {split}\n" + rows("0", forms=letter))
        for split, letter in (("test", "x"), ("dev", "y"), ("train", "z"))
    ]
    settings = PreparationSettings(vocab_size=300, val_fraction=0.5, workers=1)
    info = prepare_corpus(inputs, tmp_path / "out", settings).info
    assert documents_of(tmp_path / "out") == {"train": ["z"], "val": ["y"], "test": ["x"]}
    assert [one.sent_id for split in info.splits for one in structure_of(tmp_path / "out", split)] == [
        "train", "dev", "test",
    ]  # fmt: skip
    assert info.tokenizer.training_bytes == 1


def test_elsewhere_a_sentence_goes_with_the_text_of_its_document(tmp_path: Path, settings: PreparationSettings) -> None:
    sentences = [synthetic_sentence(3, index) for index in range(120)]
    settings = replace(settings, val_fraction=0.3, sample_sentences=120, sample_seed=3)
    prepare_sample("synthetic-treebank", tmp_path / "out", settings)
    texts = documents_of(tmp_path / "out")
    held = [held_out(text, 0.3) for text in texts_of(sentences)]
    for split in ("train", "val"):
        found = structure_of(tmp_path / "out", split)
        assert found == [sentence for sentence, out in zip(sentences, held, strict=True) if out == (split == "val")]
        assert texts[split] == texts_of(found)


def texts_of(sentences):
    """Texts of synthetic sentences, put together anew: no space before a comma or full stop, or inside a token."""
    texts = []
    for sentence in sentences:
        joined = {token.first + 1 for token in sentence.multiword_tokens}
        pieces = [
            form if number == 1 or form in ",." or number in joined else f" {form}"
            for number, form in enumerate(sentence.forms, 1)
        ]
        texts.append("".join(pieces))
    return texts


def test_all_held_out_by_name_is_refused(tmp_path: Path, settings: PreparationSettings) -> None:
    with pytest.raises(DataError, match="none is left for training") as refusal:
        prepare_corpus([write(tmp_path / "t-test.conllu", rows("0"))], tmp_path / "out", settings)
    assert "-dev or -test are held out" in refusal.value.hint
    assert not (tmp_path / "out").exists()


def test_text_and_treebanks_live_in_one_corpus(tmp_path: Path, settings: PreparationSettings) -> None:
    inputs = [write(tmp_path / "a.txt", "plain text"), write(tmp_path / "t.conllu", MIXED)]
    info = prepare_corpus([*inputs, write_jsonl(tmp_path / "b.jsonl", ["last"])], tmp_path / "out", settings).info
    assert documents_of(tmp_path / "out")["train"] == ["plain text", "Il parle du port. (10 000) don't", "last"]
    assert len(structure_of(tmp_path / "out")) == 2
    assert (info.kind, info.documents) == ("annotated", 3)


def test_roles_are_found_among_the_inputs_in_folders_and_where_they_are_named(
    tmp_path: Path, settings: PreparationSettings
) -> None:
    treebank = write(tmp_path / "t.conllu", MIXED)
    (tmp_path / "roles").mkdir()
    roles = write(tmp_path / "roles" / "r.conllup", ROLES)
    named = write(tmp_path / "r.tsv", ROLES)
    prepare_corpus([treebank, roles], tmp_path / "input", settings)
    prepare_corpus([treebank], tmp_path / "folder", replace(settings, roles=(tmp_path / "roles",)))
    prepare_corpus([treebank], tmp_path / "named", replace(settings, roles=(named,)))
    for name in ("input", "folder", "named"):
        first, second = structure_of(tmp_path / name)
        assert [(one.word, one.roleset) for one in first.predicates or ()] == [(2, "parler.01")]
        assert second.predicates is None


def test_roles_of_one_file_serve_the_treebanks_of_several(tmp_path: Path, settings: PreparationSettings) -> None:
    one = write(tmp_path / "a.conllu", "# sent_id = x\n" + rows("0"))
    other = write(tmp_path / "b.conllu", "# sent_id = y\n" + rows("0") + "# sent_id = x\n" + rows("0"))
    lines = "".join(f"# sent_id = {name}\n1\tgo.0{name}\t_\n\n" for name in "xyz")
    roles = write(tmp_path / "r.conllup", "# global.columns = ID UP:PRED UP:ARGHEADS\n" + lines)
    with pytest.raises(DataError, match="2 problems") as refusal:
        prepare_corpus([one, other, roles], tmp_path / "out", settings)
    assert all("repeated-sent-id" in problem for problem in refusal.value.problems)
    prepare_corpus([one, other, roles], tmp_path / "out", replace(settings, on_error="skip"))
    assert [one.predicates for one in structure_of(tmp_path / "out")] == [None, (Predicate(1, "go.0y"),), None]
    findings = [json.loads(line) for line in (tmp_path / "out" / "findings.jsonl").read_text().splitlines()]
    assert [(one["kind"], one["source"], one["sent_id"]) for one in findings] == [
        ("repeated-sent-id", "a.conllu", "x"),
        ("repeated-sent-id", "b.conllu", "x"),
        ("roles-without-sentence", "r.conllup", "z"),
    ]


def test_roles_without_a_treebank_are_refused(tmp_path: Path, settings: PreparationSettings) -> None:
    text, roles = write(tmp_path / "a.txt", "text"), write(tmp_path / "r.conllup", ROLES)
    for inputs, given in (([text, roles], ()), ([text], (roles,))):
        with pytest.raises(UsageError, match=r"r\.conllup: roles without a treebank"):
            prepare_corpus(inputs, tmp_path / "out", replace(settings, roles=given))
    assert not (tmp_path / "out").exists()


def test_conll_2009_is_read_by_name_and_by_option(tmp_path: Path, settings: PreparationSettings) -> None:
    prepare_corpus([write(tmp_path / "a.conll09", GOOD)], tmp_path / "named", settings)
    prepare_corpus([write(tmp_path / "a.txt", GOOD)], tmp_path / "said", replace(settings, format="conll2009"))
    for name in ("named", "said"):
        (sentence,) = structure_of(tmp_path / name)
        assert (sentence.heads, sentence.predicates[0].roleset) == ((2, 0, 2, 3), "want.01")
        assert documents_of(tmp_path / name)["train"] == ["Dogs want to bark"]


def test_compressed_treebanks_are_read(tmp_path: Path, settings: PreparationSettings) -> None:
    (tmp_path / "t-train.conllu.gz").write_bytes(gzip.compress(MIXED.encode()))
    (tmp_path / "r.conllup.gz").write_bytes(gzip.compress(ROLES.encode()))
    prepare_corpus([tmp_path / "t-train.conllu.gz", tmp_path / "r.conllup.gz"], tmp_path / "out", settings)
    assert structure_of(tmp_path / "out")[0].predicates
    (tmp_path / "cut.conllu.gz").write_bytes(gzip.compress(MIXED.encode() * 100)[:-12])
    with pytest.raises(DataError, match=r"cut\.conllu\.gz: the gzip data"):
        prepare_corpus([tmp_path / "cut.conllu.gz"], tmp_path / "cut", settings)


def test_strict_reading_names_the_faults_of_all_files_and_makes_nothing(
    tmp_path: Path, settings: PreparationSettings
) -> None:
    one = write(tmp_path / "a.conllu", "# sent_id = x\n" + rows("1") + rows("0"))
    other = write(tmp_path / "b.conllu", rows("0", "0"))
    with pytest.raises(DataError, match="2 problems in annotated sentences") as refusal:
        prepare_corpus([one, other], tmp_path / "out", settings)
    assert refusal.value.problems == (
        f"{one}:2 (sent_id x): own-head: word 1 is its own head",
        f"{other}:2: several-roots: 2 roots",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.conllu", "b.conllu", "bytes.json"]


def test_the_hint_tells_what_skipping_does_to_the_sentences_that_were_found(
    tmp_path: Path, settings: PreparationSettings
) -> None:
    again = "# sent_id = x\n" + rows("0")

    def hint(text: str) -> str | None:
        with pytest.raises(DataError) as refusal:
            prepare_corpus([write(tmp_path / "t.conllu", text)], tmp_path / "out", settings)
        return refusal.value.hint

    skip = "correct them, or go on with --on-error skip, which "
    assert hint(rows("1")) == f"{skip}leaves these sentences out"
    assert hint(again * 2) == f"{skip}keeps these sentences, without roles that are in doubt"
    assert hint(again * 2 + rows("1")) == (
        f"{skip}leaves these sentences out, but for repeated-sent-id: such sentences stay, without roles that are in "
        "doubt"
    )


def test_text_met_beside_treebanks_in_a_folder_is_read_and_warned_about(
    tmp_path: Path, settings: PreparationSettings
) -> None:
    folder = tmp_path / "UD"
    (folder / "more").mkdir(parents=True)
    write(folder / "a.conllu", rows("0"))
    write(folder / "LICENSE.txt", "licence")
    write(folder / "more" / "README.txt", "readme")
    (tmp_path / "books").mkdir()
    write(tmp_path / "books" / "b.txt", "book")
    heard = Heard()
    prepare_corpus([folder, tmp_path / "books"], tmp_path / "out", settings, observer=heard)
    assert documents_of(tmp_path / "out")["train"] == ["licence", "a", "readme", "book"]
    assert heard.warnings == [
        f"{folder}: LICENSE.txt, more/README.txt: text beside treebanks, read as documents to train on; to leave it "
        "out name the treebank files themselves"
    ]
    named = Heard()
    prepare_corpus([folder / "a.conllu", folder / "LICENSE.txt"], tmp_path / "named", settings, observer=named)
    assert named.warnings == []


def test_lenient_reading_leaves_out_whole_sentences_and_lists_them(
    tmp_path: Path, settings: PreparationSettings
) -> None:
    text = rows("0", forms="k") + "# sent_id = x\n" + rows("1", "9") + rows("1", forms="b") + "# only this\n"
    inputs = [write_jsonl(tmp_path / "a.jsonl", ["text", ""]), write(tmp_path / "t.conllu", text)]
    heard = Heard()
    prepared = prepare_corpus(inputs, tmp_path / "out", replace(settings, on_error="skip"), observer=heard)
    assert documents_of(tmp_path / "out")["train"] == ["text", "k"]
    assert prepared.info.skipped == {"empty": 1, "own-head": 2}
    # By hand: the sentence x has rows 4 and 5; a blank line, then the word of the next sentence.
    lines = [json.loads(line) for line in (tmp_path / "out" / "skipped.jsonl").read_text().splitlines()]
    assert lines == [
        {"source": "t.conllu", "line": 4, "reason": "own-head", "sent_id": "x",
         "detail": "word 1 is its own head; line 5: head 9 of 2 words"},
        {"source": "t.conllu", "line": 7, "reason": "own-head", "detail": "word 1 is its own head"},
        {"source": "a.jsonl", "line": 2, "reason": "empty", "detail": "the value of 'text' is empty"},
    ]  # fmt: skip
    (finding,) = (tmp_path / "out" / "findings.jsonl").read_text().splitlines()
    assert json.loads(finding)["kind"] == "comments-without-words"
    assert prepared.info.structure is not None
    assert prepared.info.structure.findings == {"comments-without-words": 1, "head-out-of-range": 1, "own-head": 2}
    assert any("(sent_id x)" in warning for warning in heard.warnings)
    assert any("comments-without-words" in warning for warning in heard.warnings)


def test_nothing_left_of_a_treebank_is_refused(tmp_path: Path, settings: PreparationSettings) -> None:
    with pytest.raises(DataError, match=r"no documents in the input .*1 own-head"):
        prepare_corpus([write(tmp_path / "t.conllu", rows("1"))], tmp_path / "out", replace(settings, on_error="skip"))


def test_a_form_that_spells_a_special_token_is_text(tmp_path: Path, settings: PreparationSettings) -> None:
    text = "1\t<|endoftext|>\t_\tX\t_\t_\t0\troot\t_\t_\n"
    info = prepare_corpus([write(tmp_path / "t.conllu", text)], tmp_path / "out", settings).info
    assert info.literal_special_tokens == 1
    arrays = open_corpus(tmp_path / "out").structure("train").arrays(0)
    assert bytes(arrays.tokens.tolist()) == b"<|endoftext|>"


def test_workers_backend_and_place_do_not_change_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "_BYTES_FOR_A_WORKER", 1)
    monkeypatch.setattr(preparation, "BATCH_BYTES", 200)
    settings = PreparationSettings(vocab_size=400, val_fraction=0.2, workers=1, backend="tokenizers", on_error="skip")
    changes = {"one": {}, "two [bold] %s": {"workers": 3, "backend": "auto"}}
    roles = ROLES.replace("6\t_\t_\n", "")
    for place, change in changes.items():
        (tmp_path / place).mkdir()
        inputs = [write(tmp_path / place / name, text) for name, text in (
            ("t.conllu", MIXED + "\n" + rows("1") + "".join(rows("0", "1", forms=pair) for pair in ("ab", "cd", "ef"))),
            ("r.conllup", roles),
        )]  # fmt: skip
        prepare_corpus(inputs, tmp_path / place / "out", replace(settings, **change))
    assert folder_bytes(tmp_path / "one" / "out") == folder_bytes(tmp_path / "two [bold] %s" / "out")
    assert "findings.jsonl" in folder_bytes(tmp_path / "one" / "out")


def test_another_seed_or_size_is_another_treebank(tmp_path: Path, settings: PreparationSettings) -> None:
    sizes = {}
    for name, change in {"few": {"sample_sentences": 5}, "other": {"sample_sentences": 5, "sample_seed": 9}}.items():
        info = prepare_sample("synthetic-treebank", tmp_path / name, replace(settings, **change)).info
        sizes[name] = len(structure_of(tmp_path / name))
        assert info.sources[0].name.startswith("synthetic-treebank version=")
    assert sizes == {"few": 5, "other": 5}
    assert structure_of(tmp_path / "few") == [synthetic_sentence(1, index) for index in range(5)]
    assert structure_of(tmp_path / "other") == [synthetic_sentence(9, index) for index in range(5)]


def test_sizes_and_seeds_are_of_generated_samples_alone(tmp_path: Path, settings: PreparationSettings) -> None:
    with pytest.raises(UsageError, match="python-topics has neither size nor seed"):
        prepare_sample("python-topics", tmp_path / "out", replace(settings, sample_seed=1))
    with pytest.raises(UsageError, match="no sample"):
        prepare_corpus([write(tmp_path / "a.txt", "a")], tmp_path / "out", replace(settings, sample_sentences=1))
    with pytest.raises(UsageError, match="a sample of 0 sentences"):
        prepare_sample("synthetic-treebank", tmp_path / "out", replace(settings, sample_sentences=0))
    with pytest.raises(UsageError, match="a sample has its own"):
        prepare_sample("synthetic-treebank", tmp_path / "out", replace(settings, roles=("r",)))


def test_a_corpus_whose_sentences_are_damaged_is_refused(tmp_path: Path, settings: PreparationSettings) -> None:
    prepare_corpus([write(tmp_path / "t.conllu", MIXED)], tmp_path / "out", settings)
    corpus = open_corpus(tmp_path / "out")
    with pytest.raises(KeyError):
        corpus.structure("test")
    header = tmp_path / "out" / "structure" / "train" / "header.json"
    content = json.loads(header.read_text())
    content["counts"]["predicates"] = 7
    header.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"structure/train: its counts are not those of corpus\.json"):
        open_corpus(tmp_path / "out")
    (tmp_path / "out" / "structure" / "val" / "heads.bin").write_bytes(b"1")
    with pytest.raises(DataError):
        open_corpus(tmp_path / "out")


def test_a_corpus_of_text_has_no_annotated_sentences(tmp_path: Path, settings: PreparationSettings) -> None:
    prepare_corpus([write(tmp_path / "a.txt", "text")], tmp_path / "out", settings)
    assert "structure" not in json.loads((tmp_path / "out" / "corpus.json").read_text())
    with pytest.raises(DataError, match="no annotated sentences"):
        open_corpus(tmp_path / "out").structure("train")


def test_case_u01_and_u03_through_preparation(tmp_path: Path, settings: PreparationSettings) -> None:
    (tmp_path / "u01.conllu").write_bytes(case_file("U01", "mwt.conllu"))
    (tmp_path / "u03.conllu").write_bytes(case_file("U03", "no_heads.conllu"))
    prepare_corpus([tmp_path / "u01.conllu"], tmp_path / "u01", settings)
    assert documents_of(tmp_path / "u01")["train"] == [case_expected("U01")["text for the LM"]]
    assert list(structure_of(tmp_path / "u01")[0].heads) == case_expected("U01")["heads"]
    info = prepare_corpus([tmp_path / "u03.conllu"], tmp_path / "u03", settings).info
    assert info.structure is not None
    assert [info.structure.total(name) for name in ("sentences", "words", "unannotated_words")] == [2, 8, 5]
    assert info.documents == 2


REAL = [
    # From the table of the shared data: sentences, words, multiword tokens, empty nodes, predicates, arguments.
    pytest.param("Atis", "dev", (572, 6644, 0, 0, 0, 0)),
    pytest.param("Atis", "test", (586, 6580, 0, 0, 0, 0)),
    pytest.param("Sequoia", "dev", (412, 9999, 282, 0, 646, 1438)),
    pytest.param("EWT", "dev", (2001, 25147, 359, 4, 4977, 9600)),
    pytest.param("EWT", "test", (2077, 25094, 354, 2, 4799, 9345), marks=pytest.mark.slow),
    pytest.param("EWT", "train", (12544, 204577, 2614, 37, 40477, 81540), marks=pytest.mark.slow),
    pytest.param("Atis", "train", (4274, 48655, 0, 0, 0, 0), marks=pytest.mark.slow),
    pytest.param("Sequoia", "test", (456, 10044, 310, 0, 609, 1437), marks=pytest.mark.slow),
    # The role file has 3,276 predicates and 7,398 arguments; two of its sentences have other words than the treebank's.
    pytest.param("Sequoia", "train", (2231, 50502, 1360, 0, 3272, 7388), marks=pytest.mark.slow),
]
COUNTED = ("sentences", "words", "multiword_tokens", "empty_nodes", "predicates", "arguments")


@pytest.mark.parametrize(("treebank", "split", "counts"), REAL)
def test_real_treebanks_have_their_counts_and_come_back(
    tmp_path: Path, settings: PreparationSettings, treebank: str, split: str, counts: tuple[int, ...]
) -> None:
    path, roles = real_paths(treebank, split)
    target = {"train": "train", "dev": "val", "test": "test"}[split]
    inputs = [path] if split == "train" else [path, write(tmp_path / "some-train.conllu", rows("0"))]
    info = prepare_corpus(inputs, tmp_path / "out", replace(settings, roles=tuple(roles))).info
    assert info.structure is not None
    assert tuple(info.structure.counts[target][name] for name in COUNTED) == counts
    if (treebank, split) == ("Sequoia", "train"):
        assert info.structure.findings == {"roles-of-other-words": 2}
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    reader = open_corpus(tmp_path / "out").structure(target)
    assert len(reader) == len(blocks)
    for index in range(0, len(blocks), max(1, len(blocks) // 100)):
        assert kept_columns("".join(write_conllu([reader.sentence(index)]))) == kept_columns(blocks[index])


def kept_columns(block: str) -> list[tuple[str, ...]]:
    """ID, FORM, UPOS, HEAD and DEPREL of the lines of a sentence."""
    rows_found = [line.split("\t") for line in block.splitlines() if line and not line.startswith("#")]
    return [(cells[0], cells[1], cells[3], cells[6], cells[7]) for cells in rows_found]

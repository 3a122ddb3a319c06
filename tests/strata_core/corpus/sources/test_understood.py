"""What inputs were taken for, in words."""

from strata_core.corpus.sources.files import find_files
from strata_core.corpus.sources.understood import NamedFile, Understood, understood_text


def test_each_kind_has_a_line_with_its_files_and_their_splits(tmp_path) -> None:
    for name in ("a.txt", "b-ud-dev.conllu", "c.jsonl", "d.txt", "r.conllup"):
        (tmp_path / name).write_text("")
    files, _ = find_files([tmp_path, "-"])
    roles = [file for file in files if file.name == "r.conllup"]
    assert list(map(str, understood_text(files, roles))) == [
        "understood 3 files as text: a.txt, d.txt, standard input",
        "understood 1 file as annotated sentences (CoNLL-U): b-ud-dev.conllu (val)",
        "understood 1 file as JSON Lines of text: c.jsonl",
        "understood 1 file as roles of annotated sentences: r.conllup",
    ]


def test_of_many_files_the_first_are_named() -> None:
    many = Understood("text", tuple(NamedFile(f"{n}.txt") for n in range(1200)))
    assert str(many).endswith("1,200 files as text: 0.txt, 1.txt, 2.txt, 3.txt, 4.txt, 5.txt and 1,194 more")

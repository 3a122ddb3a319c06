"""Which files of triples there are behind inputs, and what each of them is for: splits go by the words in names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from strata_core.corpus.graphs.triples.columns import cells_of, find_layout
from strata_core.corpus.graphs.triples.knowledge_graph import SPLITS
from strata_core.corpus.graphs.triples.openke import OPENKE_ENTITIES, OPENKE_FILES
from strata_core.corpus.sources.conversions import conversion_of
from strata_core.corpus.sources.files import (
    InputFile,
    PassedOver,
    escape_name,
    find_files,
    format_by_name,
    uncompressed_name,
)
from strata_core.corpus.sources.glance import Glance, glance
from strata_core.errors import DataError, UsageError

TABS, CSV, N_TRIPLES = "tabs", "csv", "n-triples"
FORMS = {".txt": TABS, ".text": TABS, ".tsv": TABS, ".csv": CSV, ".nt": N_TRIPLES}
"""What parts the terms of a line, by a file's suffix; compression suffixes may follow."""

OWN_SUFFIXES = (".tsv", ".csv", ".nt")
"""The suffixes of files that hold nothing else."""

_WORDS = {
    "train": ("train", "training", "trn"),
    "valid": ("valid", "validation", "val", "dev", "development"),
    "test": ("test", "testing", "tst"),
}
_NEGATIVES = {"negative", "negatives", "neg", "corrupted"}
_DOCUMENTATION = re.compile(r"(readme|licen[cs]e|copying|notice|citation|changes|changelog|authors)\b.*", re.IGNORECASE)


@dataclass(frozen=True)
class TriplesFile:
    """A file of triples.

    Attributes:
        file: to be opened with `open_stream`.
        split: "train", "valid" or "test".
        form: a value of FORMS.
        may_have_header: whether its first line may name the columns.
    """

    file: InputFile
    split: str
    form: str
    may_have_header: bool


@dataclass(frozen=True)
class FoundTriples:
    """What a knowledge graph is read from.

    Attributes:
        files: in the order of train, valid and test; empty in OpenKE's layout.
        openke: the folder, in OpenKE's layout.
        passed_over: names in a folder that are not read, and why.
        others: files in a folder that hold something else to train on.
    """

    files: tuple[TriplesFile, ...] = ()
    openke: Path | None = None
    passed_over: tuple[PassedOver, ...] = ()
    others: tuple[Path, ...] = ()


def find_triples(paths: Sequence[Path]) -> FoundTriples:
    """The files of triples behind one folder, or among files.

    Raises:
        UsageError: a path is not there, or files that are not of one graph.
        DataError: no file is for training.
    """
    if len(paths) == 1 and paths[0].is_dir():
        found = in_folder(paths[0])
        if not found.files and found.openke is None:
            names = ", ".join(f"{split}.txt" for split in SPLITS)
            raise DataError(
                f"{paths[0] / 'train.txt'}: missing",
                hint=f"a folder of triples has {names}, or .tsv, .csv or .nt files, with .gz or .zst behind",
            )
        return found
    if _is_openke(paths):
        return FoundTriples(openke=paths[0].parent)
    return FoundTriples(files=_with_splits(paths))


def in_folder(folder: Path, *, beside_others: bool = True) -> FoundTriples:
    """The files of triples directly in a folder: `train.txt`, `valid.txt` and `test.txt` where they are all there, else
    those whose names tell a split; else, where none is for training, all that hold triples.

    Args:
        folder: what is looked into.
        beside_others: whether files are taken that stand beside something else to train on, although none of them is
            named for training.

    Raises:
        DataError: by their names none of them is for training.
    """
    if (folder / OPENKE_ENTITIES).exists():
        return FoundTriples(openke=folder)
    names = sorted((path for path in folder.iterdir() if not path.name.startswith(".")), key=os.fsencode)
    usual = [folder / f"{split}.txt" for split in SPLITS]
    if all(path.is_file() for path in usual):
        return FoundTriples(files=_with_splits(usual), passed_over=_passed_over(names, usual))
    candidates = [path for path in names if path.is_file() and form_of(path.name) and not _is_documentation(path.name)]
    looks = {path: look(path) for path in candidates}
    kept = [path for path in candidates if not _is_of_negatives(path.name)]
    taken = [path for path in kept if looks[path].is_triples]
    has_train = any(split_in_name(path.name) == "train" for path in taken)
    if has_train:
        likely = [path for path in kept if looks[path].is_mostly_triples or looks[path].is_blank]
        taken = [path for path in likely if split_in_name(path.name)]
    theirs = {*taken, *(path for path in candidates if looks[path].is_triples)}
    others = tuple(path for path in names if _is_another_kind(path) and path not in theirs)
    if not taken or (others and not has_train and not beside_others):
        return FoundTriples(others=others)
    return FoundTriples(_with_splits(taken), passed_over=_passed_over(names, taken), others=others)


def form_of(name: str) -> str | None:
    """How a file of triples with this name is read, a value of FORMS; None where the name does not tell."""
    return FORMS.get(_suffix(name))


def has_own_suffix(name: str) -> bool:
    """Whether a file with this name holds triples or nothing that is read."""
    return _suffix(name) in OWN_SUFFIXES


def look(path: Path) -> Glance:
    """What the beginning of a file looks like, to its name: N-Triples, columns under a header, or columns alone. A file
    that cannot be read looks like no triples; whoever reads it says what is wrong."""
    form = form_of(path.name)
    if form == N_TRIPLES:
        return Glance(1, 1)
    file = find_files([path], format="text")[0][0]
    try:
        if form != CSV and not has_own_suffix(path.name):
            return glance(file)
        layout = find_layout(file, is_csv=form == CSV)
    except DataError:
        return Glance(1, 0)
    return Glance(1, 1) if layout.by_name is not None else glance(file, lambda line: cells_of(line, layout))


def split_in_name(name: str) -> str | None:
    """The split ("train", "valid" or "test") that the words of a name tell; None where they tell none, or several."""
    words = _words(name)
    told = {split for split, own in _WORDS.items() if words.intersection(own)}
    return told.pop() if len(told) == 1 else None


def _with_splits(paths: Sequence[Path]) -> tuple[TriplesFile, ...]:
    negatives = [path for path in paths if _is_of_negatives(path.name)]
    if negatives:
        raise UsageError(
            f"{_listed(negatives)}: by name triples that do not hold",
            hint="a knowledge graph is made of those that hold: leave such files out",
        )
    splits = {path: split_in_name(path.name) for path in paths}
    unnamed = [path for path, split in splits.items() if split is None]
    if unnamed and "train" in splits.values():
        raise UsageError(
            f"{_listed(unnamed)}: the name tells no split, and others' names do",
            hint="put train, valid or test into the name, or leave the file out",
        )
    if not unnamed and "train" not in splits.values():
        raise DataError(
            f"{_listed(paths)}: no triples to train on", hint="by its name none of the files is for training"
        )
    files = [_triples_file(path, splits[path] or "train") for path in paths]
    return tuple(sorted(files, key=lambda one: SPLITS.index(one.split)))


def _triples_file(path: Path, split: str) -> TriplesFile:
    hint = conversion_of(str(path))
    if hint is not None and path.exists():
        raise UsageError(f"{path}: its format is not read", hint=hint)
    file = find_files([path], format="triples")[0][0]
    return TriplesFile(file, split, form_of(path.name) or TABS, _suffix(path.name) in (".tsv", ".csv"))


def _is_openke(paths: Sequence[Path]) -> bool:
    folders = {path.parent for path in paths}
    is_theirs = all(path.name in OPENKE_FILES for path in paths)
    return is_theirs and len(folders) == 1 and (folders.pop() / OPENKE_ENTITIES).is_file()


def _passed_over(names: Sequence[Path], taken: Sequence[Path]) -> tuple[PassedOver, ...]:
    return tuple(PassedOver(escape_name(path.name), _reason(path)) for path in names if path not in taken)


def _reason(path: Path) -> str:
    if path.is_dir():
        return "a folder inside a folder of triples"
    if _is_of_negatives(path.name):
        return "by name triples that do not hold"
    if form_of(path.name) and split_in_name(path.name) is None and not _is_documentation(path.name):
        return "its name tells no split"
    return "no file of triples"


def _is_another_kind(path: Path) -> bool:
    return path.is_file() and format_by_name(path.name) is not None and not _is_documentation(path.name)


def _is_documentation(name: str) -> bool:
    return _DOCUMENTATION.fullmatch(name) is not None


def _is_of_negatives(name: str) -> bool:
    return not _words(name).isdisjoint(_NEGATIVES)


def _words(name: str) -> set[str]:
    stem = os.path.splitext(uncompressed_name(name))[0]
    return set(re.findall("[a-z]+", stem.lower()))


def _suffix(name: str) -> str:
    return os.path.splitext(uncompressed_name(name))[1].lower()


def _listed(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))

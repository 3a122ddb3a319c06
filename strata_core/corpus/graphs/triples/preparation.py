"""A corpus made of a knowledge graph, and what a person is told about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from strata_core.corpus.graphs.layout import GRAPHS_FOLDER
from strata_core.corpus.graphs.names import numbers_by_name
from strata_core.corpus.graphs.output import (
    GRAPH_VAL_FRACTION,
    PreparedGraphs,
    check_val_fraction,
    finish_corpus,
    source_info,
)
from strata_core.corpus.graphs.triples.files import FoundTriples, find_triples
from strata_core.corpus.graphs.triples.knowledge_graph import Triples
from strata_core.corpus.graphs.triples.openke import OPENKE_FILES
from strata_core.corpus.graphs.triples.reading import read_triples
from strata_core.corpus.graphs.triples.writing import SPLIT_NAMES, triples_names, write_triples_split
from strata_core.corpus.sources.files import PassedOver
from strata_core.corpus.sources.understood import NamedFile, Understood
from strata_core.corpus.splits import named_split
from strata_core.errors import UsageError
from strata_core.files import folder_made_whole
from strata_core.observer import SILENT, Observer

_UNREAD_TRIPLES = "its name tells no split"
_EARLIER = {"valid": "train", "test": "train or valid"}


def prepare_triples_corpus(
    source: Path | Sequence[Path],
    out: Path,
    *,
    columns: tuple[str, ...] | None = None,
    val_fraction: float | None = None,
    observer: Observer = SILENT,
) -> PreparedGraphs:
    """Makes a corpus of a knowledge graph.

    Args:
        source: a folder, or files, as `find_triples` takes them.
        out: the directory to make.
        columns: their order, where it is not the usual one.
        val_fraction: the share of training triples held out where no file is for validation, 0 <= val_fraction < 1;
            which ones, their names tell. None for GRAPH_VAL_FRACTION.
        observer: told what was understood, and what a person should know of the triples.

    Raises:
        UsageError: `source` is not there, columns or a share that cannot be, a share although a file is for validation.
        DataError: a file is missing, or has a line that is no triple.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused.
    """
    share = GRAPH_VAL_FRACTION if val_fraction is None else val_fraction
    check_val_fraction(share)
    found = find_triples([source] if isinstance(source, Path) else source)
    understood = _understood(found)
    observer.notice(str(understood))
    _tell_of_passed_over(found.passed_over, observer)
    for_validation = next((file.name for file in understood.files if file.split == "val"), None)
    if val_fraction and for_validation is not None:
        raise UsageError(
            f"--val-fraction {val_fraction:g}, and {for_validation} is for validation",
            hint="leave one of them out",
        )
    observer.stage_started("reading triples", None, "triples")
    triples = read_triples(found, columns=columns, val_fraction=share)
    observer.stage_advanced(sum(map(len, triples.splits.values())))
    observer.stage_finished()
    names = triples_names(triples)
    with folder_made_whole(out) as folder:
        for split, name in SPLIT_NAMES.items():
            write_triples_split(folder / GRAPHS_FOLDER / name, triples, split)
        made = finish_corpus(
            folder,
            out,
            "triples",
            SPLIT_NAMES.values(),
            names,
            findings=_findings(triples),
            sources=map(source_info, triples.files),
            understood=(understood,),
            passed_over=found.passed_over,
        )
    _tell(triples, share, observer)
    return made


def _findings(triples: Triples) -> dict[str, Any]:
    findings: dict[str, Any] = {
        "repeated": triples.repeated,
        "known": triples.known,
        "unseen_entities": triples.unseen_entities,
        "unseen_relations": triples.unseen_relations,
    }
    return findings | ({"held_out": triples.held_out} if "valid" in triples.without_file else {})


def _understood(found: FoundTriples) -> Understood:
    if found.openke is not None:
        splits = {name: named_split(name.replace("2id", "")) for name in OPENKE_FILES}
        return Understood("triples", tuple(NamedFile(name, split) for name, split in splits.items()))
    return Understood("triples", tuple(NamedFile(one.file.name, SPLIT_NAMES[one.split]) for one in found.files))


def _tell_of_passed_over(passed_over: Sequence[PassedOver], observer: Observer) -> None:
    triples = [one.name for one in passed_over if one.reason == _UNREAD_TRIPLES]
    if triples:
        observer.warning(f"not read: {', '.join(triples)}: put train, valid or test into the name, or name the files")
    others = [f"{one.name} ({one.reason})" for one in passed_over if one.reason != _UNREAD_TRIPLES]
    if others:
        observer.notice(f"not read: {', '.join(others)}")


def _tell(triples: Triples, share: float, observer: Observer) -> None:
    for notice in triples.notices:
        observer.notice(notice)
    for split, count in triples.repeated.items():
        if count:
            observer.notice(f"{split}: {count:,} triples that came again were dropped")
    for split, count in triples.known.items():
        if count:
            of_all = f"{count:,} of {len(triples.splits[split]):,} triples"
            observer.warning(
                f"{split}: {of_all} are in {_EARLIER[split]} as well (a leak); they are kept, and flatter the figures"
            )
    for what, counts in (("entities", triples.unseen_entities), ("relations", triples.unseen_relations)):
        for split, count in counts.items():
            if count:
                observer.notice(f"{split}: {count:,} {what} never occur in training")
    _tell_of_shared_names(triples, observer)
    _tell_of_spaces(triples, observer)
    _tell_of_missing_splits(triples, share, observer)


def _tell_of_shared_names(triples: Triples, observer: Observer) -> None:
    for what, names in (("entities", triples.entities), ("relations", triples.relations)):
        shared = [name for name, numbers in numbers_by_name(names).items() if len(numbers) > 1]
        if shared:
            observer.warning(
                f"{what}: {len(shared):,} names stand for several numbers, {shared[0]!r} for one; strata predict "
                "refuses queries that use them, so give each number a name of its own to ask about it"
            )


def _tell_of_spaces(triples: Triples, observer: Observer) -> None:
    """Names with spaces around them, beside the same without: two names, though likely one thing."""
    for what, names in (("entities", triples.entities), ("relations", triples.relations)):
        known = set(names)
        doubled = [name for name in names if name != name.strip() and name.strip() in known]
        if doubled:
            observer.warning(f"{len(doubled):,} {what} are others but for spaces around them, such as {doubled[0]!r}")


def _tell_of_missing_splits(triples: Triples, share: float, observer: Observer) -> None:
    n_train = len(triples.splits["train"])
    if "valid" in triples.without_file:
        if triples.held_out:
            observer.notice(
                f"no file is for validation: {triples.held_out:,} of {n_train + triples.held_out:,} training triples "
                f"are held out for it, chosen by their names (--val-fraction {share:g}; 0 holds nothing out)"
            )
        else:
            why = f", and none of {n_train:,} triples could be held out ({share:g})" if share else ""
            observer.warning(f"no file is for validation{why}: nothing can be evaluated during training")
    if "test" in triples.without_file:
        observer.notice(
            "no file is for testing: the split test is empty, and strata evaluate has nothing to measure there"
        )

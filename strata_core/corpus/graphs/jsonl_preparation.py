"""Corpora made from files of graphs as JSON Lines (graph_jsonl)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from strata_core.corpus.format import SKIPPED_JSONL, TRAIN, VAL
from strata_core.corpus.graphs.example import GraphExample, Mode
from strata_core.corpus.graphs.inputs import json_lines_file, json_lines_in
from strata_core.corpus.graphs.jsonl import GraphFault, read_graph_lines, refuse_faults
from strata_core.corpus.graphs.jsonl_names import names_in_lines
from strata_core.corpus.graphs.layout import GRAPHS_FOLDER
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.output import (
    GRAPH_VAL_FRACTION,
    PreparedGraphs,
    check_val_fraction,
    counted_stage,
    finish_corpus,
    source_info,
    split_by_id,
    warn_of_empty_val,
)
from strata_core.corpus.graphs.writing import write_examples
from strata_core.corpus.sources.files import escape_name, uncompressed_name
from strata_core.corpus.sources.streams import open_stream
from strata_core.corpus.sources.understood import NamedFile, Understood
from strata_core.corpus.splits import named_split
from strata_core.errors import DataError, UsageError, first_problems
from strata_core.files import folder_made_whole, write_file
from strata_core.observer import SILENT, Observer

BAD_EXAMPLE = "bad-example"
_SHOWN_FAULTS = 3
_TEST_OF_SOME_KIND = re.compile(r"test[-_](\w[\w.-]*)")


def prepare_graph_lines_corpus(
    source: Path,
    out: Path,
    *,
    val_fraction: float = GRAPH_VAL_FRACTION,
    on_error: str = "stop",
    observer: Observer = SILENT,
) -> PreparedGraphs:
    """Makes a corpus of a file of graphs, or of a folder of such files.

    The split is told by a file's name: `train`, `val` (or `valid`, `dev`), `test`, and `test-NAME` for more tests; all
    other files are for training. Without a file for it, "val" is a share of the training examples, by their ids.
    Relations, types and labels are those of training.

    Args:
        source: a .jsonl or .ndjson file, which may be compressed (.gz, .zst), or a folder of them.
        out: the directory to make.
        val_fraction: the share of training examples held out, 0 <= val_fraction < 1.
        on_error: "stop" at examples that cannot be used, or "skip" them.
        observer: told about progress, and what was left out.

    Raises:
        UsageError: `source` is not there, or a share that cannot be.
        DataError: examples that cannot be used, all named by file, line and id; or nothing to train on.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused.
    """
    check_val_fraction(val_fraction)
    files = _files_by_split(source)
    named = tuple(NamedFile(escape_name(path.name), split) for split, paths in files.items() for path in paths)
    understood = Understood("graphs", named)
    observer.notice(str(understood))
    names = names_in_lines(chain.from_iterable(map(_lines, files[TRAIN])))
    splits, faults = _read(files, names)
    if on_error == "stop":
        refuse_faults(faults)
    is_held_out = VAL not in splits
    if is_held_out:
        splits = _with_val(splits, val_fraction)
    if not splits[TRAIN]:
        _refuse_nothing_to_train_on(source, faults, len(splits[VAL]) if is_held_out else 0, val_fraction)
    with folder_made_whole(out) as folder:
        for split, examples in splits.items():
            with counted_stage(observer, f"writing {split}", len(examples)) as counted:
                write_examples(folder / GRAPHS_FOLDER / split, counted(examples), names)
        if faults:
            write_file(folder / SKIPPED_JSONL, b"".join(map(_skipped_line, faults)))
        findings = {"skipped": {BAD_EXAMPLE: len(faults)}} if faults else {}
        sources = [source_info(path) for path in chain.from_iterable(files.values())]
        made = finish_corpus(
            folder, out, "graphs", splits, names, findings=findings, sources=sources, understood=(understood,)
        )
    _tell(splits, faults, observer)
    if is_held_out:
        warn_of_empty_val(splits, val_fraction, observer)
    return made


def _refuse_nothing_to_train_on(source: Path, faults: list[GraphFault], n_held_out: int, val_fraction: float) -> None:
    """Says why no training example is left: none can be used, all are held out, or there never was one."""
    if faults:
        raise DataError(
            f"{source}: no examples to train on: {len(faults):,} cannot be used",
            problems=first_problems(faults),
            hint="correct them: --on-error skip goes on with what is left, and nothing is",
        )
    if n_held_out:
        raise DataError(
            f"{source}: all {n_held_out:,} examples fell into the validation split, none is left for training",
            hint=f"lower --val-fraction (it is {val_fraction:g}; 0 holds nothing out)",
        )
    raise DataError(f"{source}: no examples to train on", hint="the files for training have no record")


def _files_by_split(source: Path) -> dict[str, list[Path]]:
    if not source.exists():
        raise UsageError(f"{source}: there is no such file or folder")
    paths = json_lines_in(source) if source.is_dir() else [source]
    if not paths:
        raise DataError(f"{source}: no .jsonl file in it", hint="graphs are read from train.jsonl, test.jsonl, ...")
    splits: dict[str, list[Path]] = {TRAIN: []}
    for path in paths:
        splits.setdefault(_split_of_file(path), []).append(path)
    if not splits[TRAIN]:
        raise DataError(f"{source}: no examples to train on", hint="which split a file is of, its name tells")
    return splits


def _split_of_file(path: Path) -> str:
    named = named_split(path.name)
    test = _TEST_OF_SOME_KIND.fullmatch(Path(uncompressed_name(path.name)).stem.lower())
    if named is None and test:
        return f"test-{test[1].replace('_', '-')}"
    return named or TRAIN


def _read(
    files: Mapping[str, Sequence[Path]], names: GraphNames
) -> tuple[dict[str, list[GraphExample]], list[GraphFault]]:
    splits: dict[str, list[GraphExample]] = {split: [] for split in files}
    faults = []
    for split, paths in files.items():
        for path in paths:
            for read in read_graph_lines(_lines(path), file=str(path), names=names, asks=False):
                if isinstance(read, GraphFault):
                    faults.append(read)
                else:
                    splits[split].append(read)
    return splits, faults


def _lines(path: Path) -> Iterator[bytes]:
    with open_stream(json_lines_file(path)) as stream:
        yield from stream.content


def _with_val(splits: dict[str, list[GraphExample]], val_fraction: float) -> dict[str, list[GraphExample]]:
    parted: dict[str, list[GraphExample]] = {TRAIN: [], VAL: []}
    for example in splits[TRAIN]:
        parted[split_by_id(example.id, val_fraction)].append(example)
    return splits | parted


def _skipped_line(fault: GraphFault) -> bytes:
    name = escape_name(Path(fault.file).name)
    record = {"source": name, "line": fault.line, "reason": BAD_EXAMPLE, "detail": "; ".join(fault.details)}
    return json.dumps(record | {"id": fault.id}, ensure_ascii=False).encode() + b"\n"


def _tell(splits: dict[str, list[GraphExample]], faults: Sequence[GraphFault], observer: Observer) -> None:
    for fault in faults[:_SHOWN_FAULTS]:
        observer.warning(f"skipped {fault}")
    if faults:
        observer.notice(f"examples left out: {len(faults):,}; each is listed in {SKIPPED_JSONL}")
    for split, examples in splits.items():
        without = sum(example.query.mode == Mode.NOTHING for example in examples)
        if without:
            observer.warning(
                f"{split}: {without:,} of {len(examples):,} graphs have no query: no answers are learned from such "
                "graphs, at most a status"
            )

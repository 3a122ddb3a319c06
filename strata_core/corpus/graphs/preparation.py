"""Corpora of graphs: generated, from triples, CLUTRR or JSON Lines; each made aside and renamed when it is whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from strata_core.corpus.flat_arrays import json_bytes
from strata_core.corpus.format import TRAIN, VAL
from strata_core.corpus.generators.reasoning import (
    GENERATOR_VERSION,
    NAMES,
    SPLITS,
    ReasoningSettings,
    reasoning_examples,
)
from strata_core.corpus.generators.reasoning_report import reasoning_report
from strata_core.corpus.graphs.clutrr import Kinship, clutrr_files, clutrr_names, kinship_examples, read_clutrr
from strata_core.corpus.graphs.inputs import CLUTRR, TRIPLES, GraphInput
from strata_core.corpus.graphs.jsonl_preparation import prepare_graph_lines_corpus
from strata_core.corpus.graphs.layout import GRAPHS_FOLDER
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
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.corpus.graphs.triples.preparation import prepare_triples_corpus
from strata_core.corpus.graphs.writing import write_examples
from strata_core.corpus.sources.files import escape_name
from strata_core.corpus.sources.samples import GRAPH_SAMPLES
from strata_core.corpus.sources.understood import NamedFile, Understood
from strata_core.errors import DataError, UsageError
from strata_core.files import folder_made_whole, write_file
from strata_core.observer import SILENT, Observer

REPORT_JSON = "report.json"

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class GraphSettings:
    """How a corpus of graphs is made; None stands for the default of what it is made from.

    Attributes:
        columns: order of "head", "relation" and "tail" in files of triples.
        val_fraction: share of the training examples held out, where there is no split for validation.
        on_error: "stop" at bad examples or "skip" them, in JSON Lines.
        sample_seed, sample_examples, sample_eval_examples, sample_longest_hops, sample_doubtful_share: of generated
            examples: seed, how many to train on, how many in each other split, hops of the longest training query,
            share around a doubtful link.
    """

    columns: tuple[str, ...] | None = None
    val_fraction: float | None = None
    on_error: str = "stop"
    sample_seed: int | None = None
    sample_examples: int | None = None
    sample_eval_examples: int | None = None
    sample_longest_hops: int | None = None
    sample_doubtful_share: float | None = None

    def reasoning(self) -> ReasoningSettings:
        """The settings of the generator."""
        default = ReasoningSettings()
        return ReasoningSettings(
            seed=_first(self.sample_seed, default.seed),
            longest_hops=_first(self.sample_longest_hops, default.longest_hops),
            doubtful_share=_first(self.sample_doubtful_share, default.doubtful_share),
            n_examples={
                split: _first(self.sample_examples if split == TRAIN else self.sample_eval_examples, count)
                for split, count in default.n_examples.items()
            },
        )


def prepare_graphs(
    source: GraphInput, out: Path, settings: GraphSettings | None = None, *, observer: Observer = SILENT
) -> PreparedGraphs:
    """Makes a corpus of whatever holds graphs.

    Raises:
        UsageError, DataError, PlaceTakenError, StorageError: as the functions for each format.
    """
    settings = settings or GraphSettings()
    val_fraction = _first(settings.val_fraction, GRAPH_VAL_FRACTION)
    if source.format == TRIPLES:
        return prepare_triples_corpus(
            source.paths, out, columns=settings.columns, val_fraction=settings.val_fraction, observer=observer
        )
    if source.format == CLUTRR:
        return prepare_clutrr_corpus(source.path, out, val_fraction=val_fraction, observer=observer)
    return prepare_graph_lines_corpus(
        source.path, out, val_fraction=val_fraction, on_error=settings.on_error, observer=observer
    )


def prepare_graph_sample(
    name: str, out: Path, settings: GraphSettings | None = None, *, observer: Observer = SILENT
) -> PreparedGraphs:
    """Makes a corpus of one of GRAPH_SAMPLES.

    Raises:
        UsageError: no sample has that name, or settings that cannot be.
        PlaceTakenError, StorageError: as `prepare_reasoning_corpus`.
    """
    if name not in GRAPH_SAMPLES:
        raise UsageError(f"there is no sample {name!r}", hint=f"samples of graphs: {', '.join(GRAPH_SAMPLES)}")
    return prepare_reasoning_corpus(out, (settings or GraphSettings()).reasoning(), observer=observer)


def prepare_reasoning_corpus(
    out: Path, settings: ReasoningSettings | None = None, *, observer: Observer = SILENT
) -> PreparedGraphs:
    """Makes a corpus of generated examples, with a report.json on their balance and on baselines.

    Raises:
        UsageError: settings that cannot be.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused.
    """
    settings = settings or ReasoningSettings()
    settings.check()
    wanted = [split for split in SPLITS if split in settings.n_examples]
    with folder_made_whole(out) as folder:
        for split in wanted:
            with counted_stage(observer, f"generating {split}", settings.n_examples[split]) as counted:
                examples = counted(reasoning_examples(settings, split))
                write_examples(folder / GRAPHS_FOLDER / split, examples, NAMES)
        n_examples = sum(settings.n_examples.values())
        observer.stage_started("judging baselines", n_examples, "examples")
        readers = {split: GraphReader(folder / GRAPHS_FOLDER / split) for split in wanted}
        write_file(folder / REPORT_JSON, json_bytes(reasoning_report(readers, NAMES)))
        observer.stage_advanced(n_examples)
        observer.stage_finished()
        generator = {"version": GENERATOR_VERSION, **asdict(settings)}
        return finish_corpus(folder, out, "reasoning", wanted, NAMES, generator=generator)


def prepare_clutrr_corpus(
    source: Path, out: Path, *, val_fraction: float = GRAPH_VAL_FRACTION, observer: Observer = SILENT
) -> PreparedGraphs:
    """Makes a corpus of a folder of CLUTRR: "train", a "val" held out from it, and "test-02" and so on by hops.

    Args:
        source: a folder with train.jsonl and test_K.jsonl.
        out: the directory to make.
        val_fraction: the share of training examples held out, 0 <= val_fraction < 1; which ones, their ids tell.
        observer: told about progress.

    Raises:
        UsageError: `source` is not there, or a share that cannot be.
        DataError: a line that is no example, or nothing to train on.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused.
    """
    check_val_fraction(val_fraction)
    files = clutrr_files(source)
    understood = Understood("clutrr", tuple(NamedFile(escape_name(path.name), split) for split, path in files.items()))
    observer.notice(str(understood))
    splits = {split: _read_kinships(path) for split, path in files.items()}
    names = clutrr_names(splits[TRAIN])
    splits = {**_with_val(splits.pop(TRAIN), val_fraction), **splits}
    if not splits[TRAIN]:
        raise DataError(f"{files[TRAIN]}: no examples to train on")
    with folder_made_whole(out) as folder:
        for split, kinships in splits.items():
            with counted_stage(observer, f"writing {split}", len(kinships)) as counted:
                write_examples(folder / GRAPHS_FOLDER / split, counted(kinship_examples(kinships, names)), names)
        sources = [source_info(path) for path in files.values()]
        made = finish_corpus(folder, out, "clutrr", splits, names, sources=sources, understood=(understood,))
    warn_of_empty_val(splits, val_fraction, observer)
    return made


def _first(given: _Value | None, default: _Value) -> _Value:
    return default if given is None else given


def _read_kinships(path: Path) -> list[Kinship]:
    try:
        with open(path, "rb") as lines:
            return list(read_clutrr(lines, file=str(path)))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _with_val(kinships: list[Kinship], val_fraction: float) -> dict[str, list[Kinship]]:
    splits: dict[str, list[Kinship]] = {TRAIN: [], VAL: []}
    for kinship in kinships:
        splits[split_by_id(kinship.id, val_fraction)].append(kinship)
    return splits

"""From sources to a corpus directory: tokenizer, shards, `corpus.json` and manifest, made aside and renamed."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from strata_core.corpus.encoding import BackendRefusal, EncodingSettings, Job, Records
from strata_core.corpus.format import TOKENIZER_JSON, TRAIN, CorpusInfo, SplitInfo, TokenizerInfo, smallest_dtype
from strata_core.corpus.output import CorpusOutput
from strata_core.corpus.sources.files import InputFile, PassedOver, find_files
from strata_core.corpus.sources.samples import SAMPLE_TEXT_KEY
from strata_core.corpus.sources.source import FileSource, Piece, SampleSource, Source
from strata_core.corpus.sources.text import TextPart
from strata_core.corpus.stage import Stage, shown_stage
from strata_core.corpus.tokenizer import (
    END_OF_TEXT,
    TextTokenizer,
    check_tokenizer,
    check_vocab_size,
    read_tokenizer,
    train_tokenizer,
)
from strata_core.corpus.training_text import TrainingText
from strata_core.corpus.workers import encode_in_order, encoding_workers
from strata_core.errors import DataError, UsageError
from strata_core.files import folder_made_whole, storage_errors, write_file
from strata_core.manifest import Manifest, hash_files
from strata_core.observer import SILENT, Observer

TRAINING_BYTES = 16 << 20
"""How much text a tokenizer is learned from at most, so that its needs do not grow with the input."""

BATCH_BYTES = 1 << 20
_CHECKED_CHARACTERS = 1 << 10
_FIRST_CHECKED_CHARACTERS = 1 << 16
_BYTES_FOR_A_WORKER = 4 << 20
_MOST_WORKERS = 8
_WORK_FOLDER = ".work"


@dataclass(frozen=True)
class PreparationSettings:
    """How a corpus is made.

    Attributes:
        vocab_size: of the tokenizer to learn; unused where one is given.
        tokenizer: a tokenizer.json to take instead.
        text_key: the key of the text in a JSON Lines record.
        format: "auto", "text" or "jsonl": how files are read.
        val_fraction: the share of documents held out for validation, 0 <= val_fraction < 1.
        shard_tokens: tokens after which a shard is closed.
        on_error: "stop" at a bad record, or "skip" it.
        workers: processes that encode; None for one a processor. Does not change the result.
        backend: "auto", "tokenizers" or "fast". Does not change the result.
    """

    vocab_size: int = 8192
    tokenizer: Path | None = None
    text_key: str = "text"
    format: str = "auto"
    val_fraction: float = 0.01
    shard_tokens: int = 1 << 26
    on_error: str = "stop"
    workers: int | None = None
    backend: str = "auto"


@dataclass(frozen=True)
class PreparedCorpus:
    """A corpus that has been made.

    Attributes:
        path: the directory.
        info: its `corpus.json`.
        digest: of its manifest.
        passed_over: names inside folders that were not read.
        backend: what encoded it in the end.
    """

    path: Path
    info: CorpusInfo
    digest: str
    passed_over: tuple[PassedOver, ...]
    backend: str


def prepare_text_corpus(
    inputs: Sequence[str | os.PathLike[str]],
    out: Path,
    settings: PreparationSettings | None = None,
    *,
    standard_input: BinaryIO | None = None,
    observer: Observer = SILENT,
) -> PreparedCorpus:
    """Makes a corpus of text from files and folders.

    The same inputs and settings give the same bytes, whatever the number of workers, the backend, the machine and the
    place. `out` appears when it is whole, or not at all.

    Args:
        inputs: files, folders, and "-" for standard input, in reading order.
        out: the directory to make.
        settings: how; None for the defaults.
        standard_input: what "-" stands for.
        observer: told about progress, and what was left out.

    Raises:
        UsageError: an input is not there, or settings that cannot be.
        DataError: an input or the tokenizer cannot be used, a bad record, or no document to train on.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused to take the result.
    """
    settings = settings or PreparationSettings()
    _check_settings(settings)
    if not inputs:
        raise UsageError("nothing to read", hint="name files or folders, - for standard input, or a sample")
    files, passed_over = find_files(inputs, format=settings.format)
    with folder_made_whole(out) as folder, _work_folder(folder) as work:
        files = [_copied(file, standard_input, work, observer) if file.is_standard_input else file for file in files]
        preparation = _Preparation(folder, work, [FileSource(file) for file in files], settings, observer)
        return preparation.run(out, tuple(passed_over))


def prepare_sample(
    name: str, out: Path, settings: PreparationSettings | None = None, *, observer: Observer = SILENT
) -> PreparedCorpus:
    """Makes a corpus of a built-in sample, as `prepare_text_corpus` does of files.

    Raises:
        UsageError: no sample has that name, or settings that cannot be.
        DataError, PlaceTakenError, StorageError: as `prepare_text_corpus`.
    """
    source = SampleSource(name)
    settings = replace(settings or PreparationSettings(), text_key=SAMPLE_TEXT_KEY)
    _check_settings(settings)
    with folder_made_whole(out) as folder, _work_folder(folder) as work:
        return _Preparation(folder, work, [source], settings, observer).run(out, ())


def _check_settings(settings: PreparationSettings) -> None:
    if not 0 <= settings.val_fraction < 1:
        raise UsageError(f"a validation share of {settings.val_fraction} cannot be", hint="it is from 0 up to below 1")
    if settings.shard_tokens < 1:
        raise UsageError(f"shards of {settings.shard_tokens} tokens cannot be", hint="it is 1 at least")
    if settings.workers is not None and settings.workers < 1:
        raise UsageError(f"{settings.workers} workers cannot be", hint="it is 1 at least")
    if settings.backend == "fast" and not _has_fast_backend():
        raise UsageError("the fast backend is not installed", hint="pip install 'strata[fast]' brings it")
    if settings.tokenizer is None:
        check_vocab_size(settings.vocab_size)


def _has_fast_backend() -> bool:
    return importlib.util.find_spec("gigatoken") is not None


@contextmanager
def _work_folder(folder: Path) -> Iterator[Path]:
    """A place for what is needed while the corpus is made and is no part of it."""
    work = folder / _WORK_FOLDER
    with storage_errors(work):
        work.mkdir()
    yield work


def _copied(file: InputFile, standard_input: BinaryIO | None, work: Path, observer: Observer) -> InputFile:
    """Standard input as a file, since it is read more than once."""
    if standard_input is None:
        raise UsageError("there is no standard input to read")
    path = work / "standard-input"
    with shown_stage(observer, "reading standard input", None) as stage, storage_errors(path), open(path, "wb") as copy:
        while data := _read_some(standard_input):
            copy.write(data)
            stage.add(len(data))
    return replace(file, path=path, size_bytes=stage.done)


def _read_some(standard_input: BinaryIO) -> bytes:
    try:
        return standard_input.read(BATCH_BYTES)
    except OSError as error:
        raise DataError(f"standard input: cannot be read: {error.strerror or error}") from error


class _Disagreement(Exception):
    """The encoder does not give the ids of the reference; `str()` says where."""


class _Preparation:
    """One corpus being made.

    Args:
        folder: where its files go.
        work: for files that are no part of it.
        sources: what it is made from.
        settings: how.
        observer: told about progress.
    """

    def __init__(
        self, folder: Path, work: Path, sources: Sequence[Source], settings: PreparationSettings, observer: Observer
    ) -> None:
        self._folder = folder
        self._work = work
        self._sources = sources
        self._settings = settings
        self._observer = observer
        self._total_bytes = sum(source.size_bytes for source in sources)

    def run(self, final: Path, passed_over: tuple[PassedOver, ...]) -> PreparedCorpus:
        """Writes all files of the corpus, which will be found at `final`."""
        tokenizer, origin = self._tokenizer()
        write_file(self._folder / TOKENIZER_JSON, tokenizer.data)
        output, splits, backend = self._encode(tokenizer)
        self._check_documents(output, splits)
        info = CorpusInfo(
            kind="text",
            documents=sum(split.documents for split in splits.values()),
            tokens=sum(split.tokens for split in splits.values()),
            bytes=sum(split.bytes for split in splits.values()),
            vocab_size=tokenizer.vocab_size,
            dtype=smallest_dtype(tokenizer.vocab_size),
            end_of_text=END_OF_TEXT,
            end_of_text_id=tokenizer.end_of_text_id,
            tokenizer=origin,
            val_fraction=self._settings.val_fraction,
            splits=splits,
            sources=tuple(source.info() for source in self._sources),
            skipped=dict(sorted(output.skipped.items())),
            literal_special_tokens=output.literal_special_tokens,
            lossy_documents=output.lossy_documents,
        )
        info.write(self._folder)
        digest = self._write_manifest()
        shutil.rmtree(self._work)
        _report(info, output, passed_over, self._observer)
        return PreparedCorpus(final, info, digest, passed_over, backend)

    def _tokenizer(self) -> tuple[TextTokenizer, TokenizerInfo]:
        if self._settings.tokenizer is not None:
            return read_tokenizer(self._settings.tokenizer), TokenizerInfo(False, None, 0)
        wanted_bytes = min(self._total_bytes, TRAINING_BYTES)
        with shown_stage(self._observer, "learning the tokenizer", wanted_bytes) as stage:
            text = TrainingText(
                self._sources, text_key=self._settings.text_key, most_bytes=TRAINING_BYTES, stage=stage
            )
            data = train_tokenizer(text, self._settings.vocab_size)
        tokenizer = check_tokenizer(data, shown=TOKENIZER_JSON)
        return tokenizer, TokenizerInfo(True, self._settings.vocab_size, text.taken_bytes)

    def _encode(self, tokenizer: TextTokenizer) -> tuple[CorpusOutput, dict[str, SplitInfo], str]:
        """Encodes everything; begins anew with the reference where another encoder turns out not to agree with it."""
        backend = self._settings.backend
        if backend == "auto":
            backend = "fast" if _has_fast_backend() else "tokenizers"
        try:
            return *self._encode_with(tokenizer, backend), backend
        except BackendRefusal as refusal:
            fallback = "tokenizers"
            if self._settings.backend == "fast":
                self._observer.warning(f"{refusal}; using the tokenizers library")
        except _Disagreement as disagreement:
            fallback = "reference"
            self._observer.warning(f"backend {backend}: {disagreement}; beginning again with that library alone")
        return *self._encode_with(tokenizer, fallback), "tokenizers"

    def _encode_with(self, tokenizer: TextTokenizer, backend: str) -> tuple[CorpusOutput, dict[str, SplitInfo]]:
        settings = EncodingSettings(tokenizer.data, backend, self._settings.text_key, self._settings.val_fraction)
        output = CorpusOutput(
            self._folder,
            self._work,
            vocab_size=tokenizer.vocab_size,
            val_fraction=self._settings.val_fraction,
            shard_tokens=self._settings.shard_tokens,
            on_error=self._settings.on_error,
            names={source.shown: source.name for source in self._sources},
        )
        disagreement = None
        try:
            with (
                encoding_workers(settings, self._worker_count()) as workers,
                shown_stage(self._observer, "encoding", self._total_bytes) as stage,
            ):
                for job, encoded in encode_in_order(workers, self._jobs(tokenizer, stage)):
                    disagreement = encoded.disagreement
                    if disagreement is not None:
                        break
                    output.add(job.part, encoded)
            if disagreement is not None:
                raise _Disagreement(disagreement)
            return output, output.finish()
        except BaseException:
            output.discard()
            raise

    def _worker_count(self) -> int:
        """No more workers than there is work for: starting one takes as long as encoding some megabytes."""
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        wanted = self._settings.workers or min(usable, _MOST_WORKERS)
        return max(1, min(wanted, self._total_bytes // _BYTES_FOR_A_WORKER))

    def _jobs(self, tokenizer: TextTokenizer, stage: Stage) -> Iterator[Job]:
        """The sources cut into jobs. The first is checked against the reference more closely than the others."""
        batch: list[Records] = []
        held_bytes = 0
        checked = _FIRST_CHECKED_CHARACTERS
        for piece in self._pieces(tokenizer, stage):
            if batch and (isinstance(piece, TextPart) or held_bytes >= BATCH_BYTES):
                yield Job(records=tuple(batch), checked_characters=checked)
                batch, held_bytes, checked = [], 0, _CHECKED_CHARACTERS
            if isinstance(piece, TextPart):
                yield Job(part=piece, checked_characters=checked)
                checked = _CHECKED_CHARACTERS
            else:
                batch.append(piece)
                held_bytes += piece.size_bytes
        if batch:
            yield Job(records=tuple(batch), checked_characters=checked)

    def _pieces(self, tokenizer: TextTokenizer, stage: Stage) -> Iterator[Piece]:
        finished_bytes = 0
        for source in self._sources:
            for piece in source.pieces(in_parts=tokenizer.is_byte_level):
                stage.reach(finished_bytes + source.position_bytes, source.shown)
                yield piece
            finished_bytes += source.size_bytes
        stage.reach(finished_bytes)

    def _check_documents(self, output: CorpusOutput, splits: dict[str, SplitInfo]) -> None:
        if splits[TRAIN].documents:
            return
        documents = sum(split.documents for split in splits.values())
        if documents:
            raise DataError(
                f"all {documents} documents fell into the validation split, none is left for training",
                hint=f"lower --val-fraction (it is {self._settings.val_fraction:g}; 0 holds nothing out)",
            )
        skipped = ", ".join(f"{count} {reason}" for reason, count in sorted(output.skipped.items()))
        raise DataError(f"no documents in the input (records left out: {skipped or 'none'})")

    def _write_manifest(self) -> str:
        names = [entry.name for entry in os.scandir(self._folder) if entry.is_file()]
        total_bytes = sum((self._folder / name).stat().st_size for name in names)
        with shown_stage(self._observer, "hashing", total_bytes) as stage:
            files = hash_files(self._folder, names, workers=self._settings.workers, progress=stage.add)
        manifest = Manifest(describes="corpus", files=tuple(files))
        manifest.write(self._folder)
        return manifest.digest


def _report(info: CorpusInfo, output: CorpusOutput, passed_over: tuple[PassedOver, ...], observer: Observer) -> None:
    """Tells what a person would want to know beyond the counts."""
    if passed_over:
        observer.notice("not read: " + _listed([f"{one.name} ({one.reason})" for one in passed_over]))
    for skip in output.first_skips:
        observer.warning(f"skipped {skip.place}: {skip.detail}")
    if output.skipped:
        counts = ", ".join(f"{count} {reason}" for reason, count in sorted(output.skipped.items()))
        observer.notice(f"records left out: {counts}; each is listed in skipped.jsonl")
    if info.literal_special_tokens:
        observer.notice(f"special tokens spelled in the text: {info.literal_special_tokens}, encoded as ordinary text")
    if info.lossy_documents:
        observer.warning(
            f"the tokenizer does not give back {info.lossy_documents} of {info.documents} documents exactly;"
            f" the first begins {output.first_lossy!r}"
        )
    wanted = info.tokenizer.requested_vocab_size
    if wanted is not None and info.vocab_size < wanted:
        observer.notice(f"the text has pairs for {info.vocab_size} tokens only, not the {wanted} asked for")
    if info.val_fraction and not info.splits["val"].documents:
        observer.warning(f"none of {info.documents} documents fell into the validation split ({info.val_fraction:g})")


def _listed(names: list[str], most: int = 20) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown

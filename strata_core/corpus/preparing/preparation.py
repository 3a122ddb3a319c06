"""From sources to a corpus directory: tokenizer, shards, `corpus.json` and manifest, made aside and renamed."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from strata_core.corpus.findings import findings_jsonl
from strata_core.corpus.format import (
    FINDINGS_JSONL,
    SPLITS,
    STRUCTURE_FOLDER,
    TEST,
    TOKENIZER_JSON,
    TRAIN,
    CorpusInfo,
    SplitInfo,
    StructureInfo,
    TokenizerInfo,
    smallest_dtype,
)
from strata_core.corpus.preparing.inputs import (
    NO_TREEBANKS,
    find_role_files,
    open_sources,
    tell_of_triples_read_as_text,
    warn_of_text_beside_treebanks,
)
from strata_core.corpus.preparing.output import CorpusOutput
from strata_core.corpus.preparing.report import report
from strata_core.corpus.preparing.settings import PreparationSettings, check_settings, has_fast_backend
from strata_core.corpus.sources.files import InputFile, PassedOver, find_files
from strata_core.corpus.sources.samples import SAMPLE_TEXT_KEY, check_sample, write_treebank_sample
from strata_core.corpus.sources.source import Piece, SampleSource, Source
from strata_core.corpus.sources.text import TextPart
from strata_core.corpus.sources.understood import Understood, understood_text
from strata_core.corpus.stage import Stage, shown_stage
from strata_core.corpus.text.encoding import BackendRefusal, EncodingSettings, Job, Records
from strata_core.corpus.text.tokenizer import (
    END_OF_TEXT,
    TextTokenizer,
    check_tokenizer,
    read_tokenizer,
    train_tokenizer,
)
from strata_core.corpus.text.training_text import TrainingText
from strata_core.corpus.text.workers import encode_in_order, encoding_workers
from strata_core.corpus.treebanks.structure_encoding import write_structure
from strata_core.corpus.treebanks.treebank_reading import Treebanks, is_role_file, left_out_sentences
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
class PreparedCorpus:
    """A corpus that has been made.

    Attributes:
        path: the directory.
        info: its `corpus.json`.
        digest: of its manifest.
        passed_over: names inside folders that were not read.
        backend: what encoded it in the end.
        understood: what its inputs were taken for; empty for a sample.
    """

    path: Path
    info: CorpusInfo
    digest: str
    passed_over: tuple[PassedOver, ...]
    backend: str
    understood: tuple[Understood, ...] = ()


def prepare_corpus(
    inputs: Sequence[str | os.PathLike[str]],
    out: Path,
    settings: PreparationSettings | None = None,
    *,
    standard_input: BinaryIO | None = None,
    observer: Observer = SILENT,
) -> PreparedCorpus:
    """Makes a corpus from files and folders of text and of annotated sentences.

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
        DataError: an input or the tokenizer cannot be used, bad records, or no document to train on.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused to take the result.
    """
    settings = settings or PreparationSettings()
    check_settings(settings)
    if not inputs:
        raise UsageError("nothing to read", hint="name files or folders, - for standard input, or a sample")
    if settings.sample_sentences is not None or settings.sample_seed is not None:
        raise UsageError("the size or seed of a sample is given, and no sample")
    files, passed_over = find_files(inputs, format=settings.format)
    warn_of_text_beside_treebanks(inputs, files, observer)
    role_files = find_role_files(settings.roles)
    with folder_made_whole(out) as folder, _work_folder(folder) as work:
        files = [_copied(file, standard_input, work, observer) if file.is_standard_input else file for file in files]
        understood = understood_text(files, [*filter(is_role_file, files), *role_files])
        if settings.format == "auto":
            tell_of_triples_read_as_text(files, observer)
        for one in understood:
            observer.notice(str(one))
        sources, treebanks = open_sources(files, role_files, work, settings, observer)
        made = _Preparation(folder, work, sources, treebanks, settings, observer).run(out, tuple(passed_over))
        return replace(made, understood=understood)


def prepare_sample(
    name: str, out: Path, settings: PreparationSettings | None = None, *, observer: Observer = SILENT
) -> PreparedCorpus:
    """Makes a corpus of a built-in sample, as `prepare_corpus` does of files.

    Raises:
        UsageError: no sample has that name, or settings that cannot be.
        DataError, PlaceTakenError, StorageError: as `prepare_corpus`.
    """
    settings = replace(settings or PreparationSettings(), text_key=SAMPLE_TEXT_KEY)
    check_settings(settings)
    if settings.roles:
        raise UsageError("roles are given, and a sample has its own")
    generated = check_sample(name, sentences=settings.sample_sentences, seed=settings.sample_seed)
    with folder_made_whole(out) as folder, _work_folder(folder) as work:
        if generated is None:
            return _Preparation(folder, work, [SampleSource(name)], NO_TREEBANKS, settings, observer).run(out, ())
        file = write_treebank_sample(generated, work)
        sources, treebanks = open_sources([file], [], work, settings, observer)
        return _Preparation(folder, work, sources, treebanks, settings, observer).run(out, ())


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
        treebanks: those among them that are annotated, and what was found in them.
        settings: how.
        observer: told about progress.
    """

    def __init__(
        self,
        folder: Path,
        work: Path,
        sources: Sequence[Source],
        treebanks: Treebanks,
        settings: PreparationSettings,
        observer: Observer,
    ) -> None:
        self._folder = folder
        self._work = work
        self._sources = sources
        self._treebanks = treebanks
        self._names = {source.shown: source.name for source in sources} | dict(treebanks.names)
        self._splits = [split for split in SPLITS if split != TEST or any(one.split == TEST for one in sources)]
        self._settings = settings
        self._observer = observer
        self._total_bytes = sum(source.size_bytes for source in sources)

    def run(self, final: Path, passed_over: tuple[PassedOver, ...]) -> PreparedCorpus:
        """Writes all files of the corpus, which will be found at `final`."""
        tokenizer, origin = self._tokenizer()
        write_file(self._folder / TOKENIZER_JSON, tokenizer.data)
        output, splits, backend = self._encode(tokenizer)
        self._check_documents(output, splits)
        structure = self._write_structure(tokenizer)
        info = CorpusInfo(
            kind="text" if structure is None else "annotated",
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
            sources=(*(source.info() for source in self._sources), *self._treebanks.role_files),
            skipped=dict(sorted(output.skipped.items())),
            literal_special_tokens=output.literal_special_tokens,
            lossy_documents=output.lossy_documents,
            structure=structure,
        )
        info.write(self._folder)
        digest = self._write_manifest()
        shutil.rmtree(self._work)
        report(info, output, self._treebanks.findings, passed_over, self._observer)
        return PreparedCorpus(final, info, digest, passed_over, backend)

    def _tokenizer(self) -> tuple[TextTokenizer, TokenizerInfo]:
        if self._settings.tokenizer is not None:
            return read_tokenizer(self._settings.tokenizer), TokenizerInfo(False, None, 0)
        wanted_bytes = min(self._total_bytes, TRAINING_BYTES)
        with shown_stage(self._observer, "learning the tokenizer", wanted_bytes) as stage:
            # What a file's name holds out may not be learned from.
            sources = [source for source in self._sources if source.split in (None, TRAIN)]
            text = TrainingText(sources, text_key=self._settings.text_key, most_bytes=TRAINING_BYTES, stage=stage)
            data = train_tokenizer(text, self._settings.vocab_size)
        tokenizer = check_tokenizer(data, shown=TOKENIZER_JSON)
        return tokenizer, TokenizerInfo(True, self._settings.vocab_size, text.taken_bytes)

    def _encode(self, tokenizer: TextTokenizer) -> tuple[CorpusOutput, dict[str, SplitInfo], str]:
        """Encodes everything; begins anew with the reference where another encoder turns out not to agree with it."""
        backend = self._settings.backend
        if backend == "auto":
            backend = "fast" if has_fast_backend() else "tokenizers"
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
            splits=self._splits,
            vocab_size=tokenizer.vocab_size,
            val_fraction=self._settings.val_fraction,
            shard_tokens=self._settings.shard_tokens,
            on_error=self._settings.on_error,
            names=self._names,
        )
        disagreement = None
        try:
            for skip in left_out_sentences(self._treebanks.findings):
                output.skip(skip)
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

    def _write_structure(self, tokenizer: TextTokenizer) -> StructureInfo | None:
        """The annotated sentences, and what was found in those that are kept; None where there are no treebanks."""
        treebanks = self._treebanks
        if not treebanks.sources:
            return None
        total_bytes = sum(source.size_bytes for source in treebanks.sources)
        with shown_stage(self._observer, "writing annotated sentences", total_bytes) as stage:
            folder = self._folder / STRUCTURE_FOLDER
            info = write_structure(folder, treebanks.sources, tokenizer, self._splits, stage)
        lines = findings_jsonl(treebanks.findings, self._names)
        if lines:
            write_file(self._folder / FINDINGS_JSONL, lines)
        return replace(info, findings=dict(sorted(Counter(one.kind for one in treebanks.findings).items())))

    def _check_documents(self, output: CorpusOutput, splits: dict[str, SplitInfo]) -> None:
        if splits[TRAIN].documents:
            return
        documents = sum(split.documents for split in splits.values())
        if documents:
            remedy = f"lower --val-fraction (it is {self._settings.val_fraction:g}; 0 holds nothing out)"
            if any(source.split for source in self._sources):
                remedy += "; treebanks whose names end in -dev or -test are held out whole"
            raise DataError(
                f"all {documents} documents fell into the validation split, none is left for training", hint=remedy
            )
        skipped = ", ".join(f"{count} {reason}" for reason, count in sorted(output.skipped.items()))
        raise DataError(f"no documents in the input (records left out: {skipped or 'none'})")

    def _write_manifest(self) -> str:
        found = (path.relative_to(self._folder) for path in self._folder.rglob("*") if path.is_file())
        names = [path.as_posix() for path in found if path.parts[0] != _WORK_FOLDER]
        total_bytes = sum((self._folder / name).stat().st_size for name in names)
        with shown_stage(self._observer, "hashing", total_bytes) as stage:
            files = hash_files(self._folder, names, workers=self._settings.workers, progress=stage.add)
        manifest = Manifest(describes="corpus", files=tuple(files))
        manifest.write(self._folder)
        return manifest.digest

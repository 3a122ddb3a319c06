"""Decides by content what a file is, as its loaders would, and reads it."""

from __future__ import annotations

from strata_core.audit.findings import UNSAFE, Malformed, printable
from strata_core.audit.formats.compressed_file import compression_of, read_compressed
from strata_core.audit.formats.gguf_file import is_gguf, read_gguf
from strata_core.audit.formats.numpy_file import is_numpy_file, read_numpy
from strata_core.audit.formats.safetensors_file import looks_like_safetensors, read_safetensors
from strata_core.audit.formats.torch_legacy import read_torch_legacy
from strata_core.audit.formats.torch_tar import is_tar, read_torch_tar
from strata_core.audit.formats.torch_zip import read_torch_zip
from strata_core.audit.formats.zip_archive import LOCAL_SIGNATURE
from strata_core.audit.opening import FileBytes
from strata_core.audit.reading import Budget, Contents, PickleReader

_OTHER_FORMATS = (
    (b"\x28\xb5\x2f\xfd", "zstandard-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"PK\x05\x06", "a zip archive without records"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x7fELF", "a program"),
    (b"version https://git-lfs", "a Git LFS pointer; the checkpoint itself was not downloaded"),
)


def read_blob(file: FileBytes, budget: Budget) -> Contents:
    """Reads a checkpoint file of whatever format. What it holds against the file is in the result's findings."""
    try:
        return _read(file, budget)
    except Malformed as error:
        contents = Contents("unreadable")
        contents.corrupt(error.message)
        return contents


def _read(file: FileBytes, budget: Budget) -> Contents:
    if file.length == 0:
        contents = Contents("empty")
        contents.corrupt(f"{file.name}: an empty file")
        return contents
    if file.head(4) == LOCAL_SIGNATURE:
        return read_torch_zip(file, budget)
    if is_tar(file):
        contents = read_torch_tar(file, budget)
        _add_what_a_pickle_reader_sees(file, contents, budget)
        return contents
    if looks_like_safetensors(file):
        contents = read_safetensors(file)
        _add_what_a_pickle_reader_sees(file, contents, budget)
        return contents
    if is_numpy_file(file):
        return read_numpy(file, budget)
    if is_gguf(file):
        return read_gguf(file, budget)
    if compression_of(file) is not None:
        return read_compressed(file, budget)
    legacy = read_torch_legacy(file, budget)
    return legacy if legacy is not None else _not_a_checkpoint(file)


def _add_what_a_pickle_reader_sees(file: FileBytes, contents: Contents, budget: Budget) -> None:
    """A file can be sound in one format and a program in another; loaders that only know pickle would run it."""
    seen = Contents("pickle")
    PickleReader(file, seen, budget).run()
    if seen.globals:
        contents.findings += [finding for finding in seen.findings if finding.kind == UNSAFE]
        contents.globals += seen.globals


def _not_a_checkpoint(file: FileBytes) -> Contents:
    head = file.head(24)
    contents = Contents("unknown")
    for signature, what in _OTHER_FORMATS:
        if head.startswith(signature):
            contents.corrupt(f"{file.name}: {what}, not a checkpoint")
            return contents
    shown = printable(head[:16].decode("latin-1"), limit=64)
    contents.corrupt(f"{file.name}: not a checkpoint of a known format (it begins with {shown})")
    return contents

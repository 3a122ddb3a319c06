"""numpy array files (numpy/lib/format.py): no checkpoints, but object arrays in them are pickles."""

from __future__ import annotations

import struct

from strata_core.audit.findings import CORRUPT
from strata_core.audit.opening import FileBytes
from strata_core.audit.reading import Budget, Contents, PickleReader

_MAGIC = b"\x93NUMPY"


def is_numpy_file(file: FileBytes) -> bool:
    """Whether it starts as numpy.save starts a file."""
    return file.head(len(_MAGIC)) == _MAGIC


def read_numpy(file: FileBytes, budget: Budget) -> Contents:
    """Judges what follows the header if it is a pickle.

    Raises:
        Malformed: the file ends within its header.
    """
    contents = Contents("numpy array")
    major = file.read(len(_MAGIC), 1)[0]
    layout = "<H" if major == 1 else "<I"
    width = struct.calcsize(layout)
    (header_bytes,) = struct.unpack(layout, file.read(8, width))
    start = 8 + width + header_bytes
    part = file.part(start, file.length - start, f"{file.name}: its objects")
    if b"|O" in file.read(8 + width, min(header_bytes, 1 << 16)):
        PickleReader(part, contents, budget).run()
        contents.findings = [finding for finding in contents.findings if finding.kind != CORRUPT]
    return contents

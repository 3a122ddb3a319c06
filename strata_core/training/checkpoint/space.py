"""Room on the disk, looked at before a run starts rather than when its first checkpoint fails."""

from __future__ import annotations

import os
from pathlib import Path


def missing_bytes(folder: Path, needed_bytes: int) -> int:
    """How many bytes the file system of `folder` (which may not exist yet) lacks to take `needed_bytes`; 0 if none."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    status = os.statvfs(existing)
    return max(0, needed_bytes - status.f_bavail * status.f_frsize)

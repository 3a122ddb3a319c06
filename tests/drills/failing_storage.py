"""Takes the room or the right to write away from a run, gives it back, and tells what became of the run.

Usage: python -m tests.drills.failing_storage FOLDER. FOLDER has recipe.toml: 12 steps, saved every five. Prints one
JSON object: for each case the exit codes, what was said, what was left, and what was different in the end.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.drills.attempts import said_beside, train_or_resume
from tests.drills.forking import KILLED, differences, in_child, in_ranks

STEPS = 12
LIMIT_BYTES = 40_000
"""More than any record of a run, less than the weights of the tiny model."""

CAPABILITIES_VERSION = 0x20080522
MAY_WRITE_ANYWHERE = 1 << 1
"""_LINUX_CAPABILITY_VERSION_3 and CAP_DAC_OVERRIDE of <linux/capability.h>."""


def limit_file_size() -> None:
    """No file of this process can grow beyond the limit: a stand-in for a full disk that needs no privileges."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))


def heed_modes() -> None:
    """The modes of files hold for this process even where it runs as root (capset(2))."""
    system = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    assert system.capget(header, sets) == 0
    sets[0] &= ~MAY_WRITE_ANYWHERE
    assert system.capset(header, sets) == 0


class Failures:
    """Runs that have a checkpoint of step 5, each resumed under some hardship and then without.

    Args:
        folder: has the recipe; the runs are made there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recipe = folder / "recipe.toml"
        self._reference = folder / "undisturbed"
        assert in_child(lambda: train_or_resume(self._recipe, self._reference)) == 0

    def case(self, name: str, ranks: int, hardship: Callable[[], None], mode: int | None = None) -> dict[str, Any]:
        """Goes on from step 5 under the hardship, with the run's folders in another mode meanwhile."""
        run = self._folder / name
        stop_at = {"STRATA_FAULT_POINT": "latest pointed:1"}
        assert in_child(lambda: train_or_resume(self._recipe, run), stop_at) == KILLED
        said_beside(run).write_text("")
        saved = _digests(run / "checkpoints")
        folders = [run, *(path for path in run.rglob("*") if path.is_dir() and not path.is_symlink())]
        before = [folder.stat().st_mode for folder in folders]

        def go_on() -> int:
            hardship()
            return train_or_resume(self._recipe, run)

        if mode is not None:
            _set_modes(folders, [mode] * len(folders))
        codes = in_ranks(go_on, ranks)
        _set_modes(folders, before)
        left = _digests(run / "checkpoints")
        resumed = in_child(lambda: train_or_resume(self._recipe, run))
        different = [found for found in differences(run, self._reference, STEPS) if not found.endswith("manifest.json")]
        return {
            "codes": codes,
            "said": said_beside(run).read_text(),
            "untouched": left == saved,
            "left": sorted({path.partition("/")[0] for path in left}),
            "resumed": resumed,
            "different": different,
        }


def _digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _set_modes(folders: list[Path], modes: list[int]) -> None:
    for folder, mode in zip(folders, modes, strict=True):
        folder.chmod(mode)


def main() -> None:
    failures = Failures(Path(sys.argv[1]))
    outcome = {
        "full disk": failures.case("full", 1, limit_file_size),
        "full disk, two ranks": failures.case("full-two", 2, limit_file_size),
        "read-only run": failures.case("read-only", 1, heed_modes, mode=0o555),
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()

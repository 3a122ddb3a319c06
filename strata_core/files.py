"""Files that matter are written aside, synced and renamed; these are the few ways in which strata writes anything."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

from strata_core.errors import PlaceTakenError, StorageError, UsageError

_REASONS = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the limit on file sizes",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "operation not permitted",
    errno.EIO: "input/output error",
}


def expand_path(text: str | os.PathLike[str]) -> Path:
    """The path with a leading `~` or `~user` replaced; `$NAME` is taken as written.

    Raises:
        UsageError: the user named after `~` is unknown.
    """
    path = os.fspath(text)
    if not path.startswith("~"):
        return Path(path)
    user, _, rest = path[1:].partition("/")
    if user:
        try:
            home = pwd.getpwnam(user).pw_dir
        except KeyError:
            raise UsageError(
                f"{path}: there is no user {user!r} on this machine",
                hint=f"write ./{path} for a name that starts with ~",
            ) from None
    else:
        home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    return Path(home, rest)


@contextlib.contextmanager
def storage_errors(path: str | os.PathLike[str], *, wanted_bytes: int | None = None) -> Iterator[None]:
    """Turns an OSError met while writing `path` into a StorageError that names the path, the size and the cause."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        size = f" ({wanted_bytes:,} bytes)" if wanted_bytes is not None else ""
        raise StorageError(
            f"cannot write {error.filename or os.fspath(path)}{size}: {reason}",
            hint="make room, or choose another place for it",
        ) from error


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replaces (or makes) a file as a whole: readers see the old bytes or the new ones, also after a crash.

    Raises:
        StorageError: the file system refused; the old file is untouched and nothing else is left.
    """
    path = Path(path)
    aside = path.with_name(f".{path.name}.aside")
    with storage_errors(path, wanted_bytes=len(data)):
        try:
            with open(aside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                aside.unlink()
            raise
        sync_folder(path.parent)


def point_link(link: str | os.PathLike[str], target: str) -> None:
    """Makes `link` a symbolic link to `target`, replacing what it pointed to before in one step."""
    link = Path(link)
    aside = link.with_name(f".{link.name}.aside")
    with storage_errors(link):
        with contextlib.suppress(FileNotFoundError):
            aside.unlink()
        os.symlink(target, aside)
        os.replace(aside, link)
        sync_folder(link.parent)


def sync_tree(folder: Path) -> None:
    """Makes every file and name below a folder durable."""
    for here, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(here, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(here)


def remove_folder(folder: Path) -> None:
    """Removes a folder so that no moment shows it half gone under its own name."""
    doomed = folder.with_name(f".{folder.name}.removing")
    shutil.rmtree(doomed, ignore_errors=True)
    os.replace(folder, doomed)
    sync_folder(folder.parent)
    shutil.rmtree(doomed)


@contextlib.contextmanager
def folder_made_whole(final: Path) -> Iterator[Path]:
    """A new folder that appears under its final name only when everything in it is written and synced.

    Yields a folder aside (`.NAME.partial`, same parent). What a killed process left there is removed first. On an
    exception the folder aside is removed and `final` does not exist.

    Raises:
        PlaceTakenError: `final` exists, or another live process is making it.
        StorageError: the file system refused.
    """
    import fcntl

    if os.path.lexists(final):
        raise PlaceTakenError(
            f"{final} exists already", hint="choose another place, or move it away; nothing is overwritten"
        )
    aside = final.with_name(f".{final.name}.partial")
    with storage_errors(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        aside.mkdir(exist_ok=True)
        descriptor = os.open(aside, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PlaceTakenError(
                f"{final} is being made by another process", hint="wait for it, or choose another place"
            ) from None
        if not _is_still(aside, descriptor):
            raise PlaceTakenError(f"{final} appeared while it was being made", hint="choose another place")
        try:
            _empty(aside)
            yield aside
            with storage_errors(final):
                sync_tree(aside)
                if os.path.lexists(final):
                    raise PlaceTakenError(f"{final} appeared while it was being made", hint="choose another place")
                os.rename(aside, final)
                sync_folder(final.parent)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    finally:
        os.close(descriptor)


def _is_still(folder: Path, descriptor: int) -> bool:
    """Whether the name still means the open folder: whoever held the lock before may have renamed it."""
    try:
        return os.path.samestat(os.stat(folder), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _empty(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)

"""Paths in recipes: made absolute when read, and text again when written, also where they are not UTF-8."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from strata_core.files import expand_path

_FILE_URI = "file://"


def absolute_paths(value: Any, folder: Path) -> Any:
    """A path as a recipe has it, or a list of them, against a folder; `~` is expanded.

    "-" and what is no text stay as they are; an empty text is None, as if there were no path.

    Raises:
        UsageError: the user named after `~` is unknown.
    """
    if isinstance(value, list):
        return [absolute_paths(item, folder) for item in value]
    if not isinstance(value, str) or value == "-":
        return value
    if not value:
        return None
    if value.startswith(_FILE_URI):
        from urllib.parse import unquote_to_bytes

        return os.fsdecode(unquote_to_bytes(value.removeprefix(_FILE_URI)))
    return os.path.normpath(folder.absolute() / expand_path(value))


def path_text(path: Path) -> str:
    """A path as a recipe can hold it: as it is, or as a `file://` URI where its name is not UTF-8."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        from urllib.parse import quote

        return _FILE_URI + quote(os.fsencode(text))
    return text

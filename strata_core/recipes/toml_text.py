"""A TOML file as a dictionary, with refusals that say which bytes, which line and what to do."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from strata_core.errors import RecipeError, UsageError
from strata_core.recipes.key_lines import KeyPath, find_key_lines

_LARGEST_RECIPE_BYTES = 1 << 20
_UTF8_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_PARSER_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_YAML_LINE = re.compile(r"^\s*(?:- )?[\w.-]+:(?:\s|$)", re.MULTILINE)


def read_toml(path: Path, shown: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """The tables of a TOML file, and the line (from 1) on which each key and table is written.

    A UTF-8 byte order mark is dropped; CRLF counts as LF.

    Args:
        path: the file.
        shown: how messages call it.

    Raises:
        UsageError: there is no such file.
        RecipeError: it cannot be read, or is not UTF-8, or is not TOML.
    """
    text = _decode(_read_bytes(path, shown), shown)
    try:
        return tomllib.loads(text), find_key_lines(text)
    except RecursionError:
        raise RecipeError(f"{shown}: values are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(str(error), text, shown) from None
    except ValueError as error:
        raise RecipeError(f"{shown}: {error}") from None


def _read_bytes(path: Path, shown: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_RECIPE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{shown}: there is no such file") from None
    except IsADirectoryError:
        raise UsageError(f"{shown} is a folder; a recipe is a TOML file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RecipeError(f"{shown}: cannot be read: {reason}") from None
    if len(data) > _LARGEST_RECIPE_BYTES:
        raise RecipeError(f"{shown} is larger than {_LARGEST_RECIPE_BYTES:,} bytes, which no recipe is")
    return data


def _decode(data: bytes, shown: str) -> str:
    for mark, name in _WIDE_MARKS.items():
        if data.startswith(mark):
            raise RecipeError(
                f"{shown}: the file is {name} (it starts with the bytes {mark.hex(' ')}); recipes are UTF-8",
                hint="save it again as UTF-8",
            )
    try:
        text = data.removeprefix(_UTF8_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        offset = error.start + len(data) - len(error.object)
        raise RecipeError(
            f"{shown}:{line}: byte {error.object[error.start]:#04x} at offset {offset} is not UTF-8",
            hint="save the file again as UTF-8",
        ) from None
    text = text.replace("\r\n", "\n")
    lone = text.find("\r")
    if lone >= 0:
        line = text.count("\n", 0, lone) + 1
        raise RecipeError(
            f"{shown}:{line}: a carriage return stands without a line feed; lines end in LF or CRLF",
            hint="save the file again with Unix or Windows line ends",
        )
    return text


def _not_toml(message: str, text: str, shown: str) -> RecipeError:
    place = _PARSER_PLACE.search(message)
    reason = _PARSER_PLACE.sub("", message)
    line = int(place[1]) if place and place[1] else text.count("\n") + 1
    column = f":{place[2]}" if place and place[2] else ""
    yaml = _YAML_LINE.search(text.split("\n")[line - 1]) if line <= text.count("\n") + 1 else None
    hint = "recipes are TOML: write `key = value`, not `key: value`" if yaml else None
    return RecipeError(f"{shown}:{line}{column}: not TOML: {reason[:1].lower()}{reason[1:]}", hint=hint)

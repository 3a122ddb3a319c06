"""`--set key=value`: one setting written on the command line."""

from __future__ import annotations

import tomllib
from typing import Any

from strata_core.errors import UsageError

UNSET = object()
"""What an empty value stands for: the key goes back to its default."""


def parse_override(text: str) -> tuple[tuple[str, ...], Any]:
    """The key and the value of `key=value`.

    The value is TOML; what is not TOML is taken as a string, so that names and paths need no quotes. Nothing
    after the sign is `UNSET`.

    Raises:
        UsageError: there is no `=`, or what stands before it is no key.
    """
    key, sign, value = text.partition("=")
    keys = tuple(part.strip() for part in key.split("."))
    if not sign or not all(keys):
        raise UsageError(f"--set {text}: not of the form key=value", hint="write it as --set run.max_steps=500")
    return keys, _parse_value(value.strip())


def _parse_value(text: str) -> Any:
    if not text:
        return UNSET
    try:
        tables = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tables["value"] if tables.keys() == {"value"} else text

"""How a setting of a recipe is declared: its default, what it means, its unit and its bounds."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

LARGEST_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exact; recipes are recorded as JSON."""


class Table(BaseModel):
    """One table of a recipe. Unknown keys, values of another type, NaN and infinities are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


def setting(default: Any, description: str, *, unit: str | None = None, **bounds: Any) -> Any:
    """A setting with a default.

    Args:
        default: the value where a recipe says nothing; None for a setting that is off or absent then.
        description: what it does, as a person reads it in `strata recipes schema`.
        unit: the unit of the value ("steps", "tokens", ...), None for pure numbers, names and switches.
        bounds: limits as pydantic's Field takes them (`gt`, `ge`, `lt`, `le`).
    """
    return Field(default, description=description, json_schema_extra={"unit": unit} if unit else None, **bounds)


def derived(description: str, *, otherwise: str, unit: str | None = None, **bounds: Any) -> Any:
    """A setting that follows from others where a recipe says nothing; a loaded recipe always has its value.

    Args:
        otherwise: what it is then, in words.
    """

    def describe(schema: dict[str, Any]) -> None:
        schema.pop("default", None)
        if unit:
            schema["unit"] = unit

    return Field(None, description=f"{description} Default: {otherwise}.", json_schema_extra=describe, **bounds)


def table() -> Any:
    """A table of a recipe; left out, all its settings have their defaults."""
    return Field({}, validate_default=True)


def folder_or_file(description: str) -> Any:
    """An optional path. Relative to the recipe's folder, in `--set` to the working directory."""
    return Field(None, description=description, json_schema_extra={"format": "path"}, strict=False)

"""The shape of a model as config.json of a checkpoint holds it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

from strata_core.errors import DataError, RecipeError


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """What the shapes of all models have in common; a kind of model adds its fields."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`.

        Raises:
            DataError: a field is missing, unknown, or has a value that cannot be.
        """
        try:
            return cls(**values)
        except TypeError as error:
            found: Exception = error
        except RecipeError as error:
            found = error
        raise DataError(
            f"the model's config is not one this version knows: {found}",
            hint="load it with the version of strata that wrote it",
        ) from None

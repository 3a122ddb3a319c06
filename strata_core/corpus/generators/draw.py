"""Random choices that come out the same on every machine and in every version of Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from strata_core.randomness import derive_seed

Choice = TypeVar("Choice")


class Draw:
    """Choices keyed by (seed, purpose, index). Only `Random.random` is used: Python keeps its sequence for good."""

    def __init__(self, seed: int, purpose: str, index: int) -> None:
        self._random = random.Random(derive_seed(seed, purpose, index))

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random.random() < probability

    def one_of(self, options: Sequence[Choice]) -> Choice:
        """One of the options, each as likely as the others."""
        return options[int(self._random.random() * len(options))]

    def several_of(self, options: Sequence[Choice], count: int) -> list[Choice]:
        """Different ones of the options in random order."""
        left = list(options)
        return [left.pop(int(self._random.random() * len(left))) for _ in range(count)]

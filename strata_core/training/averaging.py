"""A running average of the weights in training (Polyak and Juditsky 1992), which is what is evaluated and saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from strata_core.errors import DataError

ITERATE = "iterate"
"""What the weight that training goes on from is called beside AdamW's moments, where the model's own is the average."""


def is_averaging(decay: float) -> bool:
    """Whether weights are averaged at all under `optimizer.average_decay`; with 0 they are not."""
    return decay > 0


class WeightAverage:
    """average += (1 - d) (weight - average) after every step, d = min(decay, (1 + n) / (10 + n)) after step n, from 0.

    The rising d keeps the first weights from counting for long. With decay 0 there is no average and nothing is done.

    Args:
        parameters: what is trained, by name; the average begins at their values.
        decay: in [0, 1); 1 / (1 - decay) steps are averaged, roughly.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], decay: float) -> None:
        self._decay = decay
        averaged = parameters if is_averaging(decay) else {}
        self._weights = {name: parameter.detach() for name, parameter in averaged.items()}
        self._averages = {name: weight.clone() for name, weight in self._weights.items()}

    def update(self, step: int) -> None:
        """Takes in the weights after the update of a step, counted from 0."""
        if self._averages:
            decay = min(self._decay, (1 + step) / (10 + step))
            torch._foreach_lerp_(list(self._averages.values()), list(self._weights.values()), 1.0 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the averages meanwhile."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        for name, average in self._averages.items():
            weight = self._weights[name]
            kept = weight.clone()
            weight.copy_(average)
            average.copy_(kept)

    def averages(self) -> dict[str, Tensor]:
        """The live averages by parameter name."""
        return dict(self._averages)

    def iterates(self) -> dict[str, Tensor]:
        """The live weights as `<parameter>.iterate`."""
        return {f"{name}.{ITERATE}": weight for name, weight in self._weights.items()}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Takes the weights that the model has for the averages, and the saved `iterates` for the weights.

        Raises:
            DataError: a weight is not in `saved`, or of another shape; nothing has been changed then.
        """
        for name, weight in self._weights.items():
            found = saved.get(f"{name}.{ITERATE}")
            if found is None or found.shape != weight.shape:
                shape = "missing" if found is None else f"of shape {list(found.shape)}"
                raise DataError(f"optimizer state {name}.{ITERATE} is {shape}, its parameter is {list(weight.shape)}")
        for name, weight in self._weights.items():
            self._averages[name].copy_(weight)
            weight.copy_(saved[f"{name}.{ITERATE}"])

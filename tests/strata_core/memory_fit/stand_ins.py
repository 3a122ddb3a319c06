"""A recipe, tokens without a corpus on disk, and tasks that the prediction has never seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strata_core.recipes.deriving import fill_derived
from strata_core.recipes.lm import LMRecipe
from strata_core.tasks.language_model.task import LanguageModelTask
from strata_core.training.task import Batch, EvaluationContext, StepPlan

VOCAB_SIZE = 301


def recipe(**changes: Any) -> LMRecipe:
    """A small language model in fp32; `changes` are settings with __ for the dot."""
    tables: dict[str, dict[str, Any]] = {
        "corpus": {"sample": "python-topics"},
        "model": {"d_model": 32, "n_layers": 3, "n_heads": 4},
        "batch": {"batch_size": 8, "micro_batch_size": 4, "seq_len": 48},
        "run": {"precision": "fp32"},
    }
    for key, value in changes.items():
        table, name = key.split("__")
        tables.setdefault(table, {})[name] = value
    return fill_derived(LMRecipe.model_validate(tables))


class Tokens:
    """A split of counted-up tokens."""

    n_tokens = 50_000
    n_bytes = 200_000
    n_documents = 10

    def tokens(self, start: int, stop: int) -> np.ndarray:
        return np.arange(start, stop) % VOCAB_SIZE


def language_model_task(recipe: LMRecipe) -> LanguageModelTask:
    corpus: Any = SimpleNamespace(
        path=Path("tokens"), vocab_size=VOCAB_SIZE, end_of_text_id=0, split=lambda name: Tokens()
    )
    return LanguageModelTask(recipe, corpus)


class RowsTask:
    """One linear layer over rows of 64 features, in micro-batches of given sizes.

    Args:
        rows: rows of each micro-batch of every step.
        evaluation_rows: rows that an evaluation reads at once.
        selects: whether the loss picks rows by value, so that shapes depend on the data.
    """

    kind = "rows"
    rate_factors: Mapping[str, float] = {}
    shapes_vary = False
    loss_weights: Mapping[str, float] = {"square": 1.0}
    metric_directions: Mapping[str, str] = {"square": "min"}
    features = 64

    def __init__(self, rows: list[int], *, evaluation_rows: int = 1, selects: bool = False) -> None:
        self._rows = rows
        self._evaluation_rows = evaluation_rows
        self._selects = selects

    def check(self) -> None:
        pass

    def build_model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(self.features, 128, bias=False), nn.Tanh())

    def plan(self, step: int) -> StepPlan:
        return StepPlan(self._rows, {"square": sum(self._rows)}, sum(self._rows), sum(self._rows))

    def worst_step(self) -> StepPlan:
        return self.plan(0)

    def fetch(self, micro_batch: int) -> Batch:
        return {"rows": torch.arange(micro_batch * self.features, dtype=torch.float32).view(micro_batch, -1)}

    def loss_sums(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        rows = batch["rows"]
        if self._selects:
            rows = rows[rows[:, 0] >= 0]
        return {"square": model(rows).square().sum()}

    def evaluate(self, model: nn.Module, context: EvaluationContext) -> dict[str, float]:
        assert not context.stop_requested()
        batch = self.fetch(self._evaluation_rows)
        return {"square": float(self.loss_sums(model, batch)["square"])}

    def config(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def facts(self) -> dict[str, Any]:
        return {}

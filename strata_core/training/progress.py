"""How far a run has come, and everything about it that a checkpoint must bring back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from strata_core.errors import DataError
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.task import StepPlan

TRAINER_FORMAT_VERSION = 1


@dataclass(frozen=True)
class Progress:
    """All units of progress together: optimizer steps (skipped updates count), samples and tokens."""

    step: int = 0
    samples: int = 0
    tokens: int = 0

    def after(self, plan: StepPlan) -> Progress:
        """The progress when that step is done."""
        return Progress(self.step + 1, self.samples + plan.samples, self.tokens + plan.tokens)


@dataclass
class TrainerState:
    """The host's part of a run's state; model, optimizer, guard and loss scale have their own.

    Attributes:
        progress: how far.
        first_loss, last_loss: of the first and of the newest step; None before, and where not finite.
        best: {"metric", "value", "step"} of the best evaluation; None before the first.
        evaluations_without_gain: since the best one.
        evaluation_pending: whether the evaluation due at this step was cut off by a stop and is still to be done.
    """

    progress: Progress = field(default_factory=Progress)
    first_loss: float | None = None
    last_loss: float | None = None
    best: dict[str, Any] | None = None
    evaluations_without_gain: int = 0
    evaluation_pending: bool = False

    def is_out_of_patience(self, recipe: TrainingRecipe) -> bool:
        """Whether as many evaluations as the recipe allows brought no gain."""
        patience = recipe.evaluation.patience
        return patience > 0 and self.evaluations_without_gain >= patience

    def is_over(self, recipe: TrainingRecipe) -> bool:
        """Whether nothing is left to do under that recipe."""
        done = self.progress.step >= recipe.run.max_steps or self.is_out_of_patience(recipe)
        return done and not self.evaluation_pending

    def to_json(self) -> dict[str, Any]:
        """For trainer.json."""
        return {"format_version": TRAINER_FORMAT_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TrainerState:
        """The inverse of `to_json`; keys of other parts are left aside.

        Raises:
            DataError: another format version, or a key is missing.
        """
        if values.get("format_version") != TRAINER_FORMAT_VERSION:
            raise DataError(
                f"trainer.json has format version {values.get('format_version')}, "
                f"this strata reads {TRAINER_FORMAT_VERSION}"
            )
        try:
            return cls(
                progress=Progress(**values["progress"]),
                **{
                    name: values[name]
                    for name in ("first_loss", "last_loss", "best", "evaluations_without_gain", "evaluation_pending")
                },
            )
        except (KeyError, TypeError) as error:
            raise DataError(f"trainer.json lacks what resuming needs: {error}") from None

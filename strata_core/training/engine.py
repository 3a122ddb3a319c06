"""The engine: one loop that trains every kind of model, and what happens around a step."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from strata_core.errors import DataError, DivergedError
from strata_core.observer import Observer, SlowStage
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.checkpoint import (
    CheckpointState,
    CheckpointStore,
    LoadedCheckpoint,
    copy_tensors,
    model_tensors,
)
from strata_core.training.distributed import Ranks
from strata_core.training.loading import BatchLoader
from strata_core.training.memory import peak_bytes
from strata_core.training.optimizer import load_optimizer_state, optimizer_state
from strata_core.training.precision import Precision
from strata_core.training.progress import TrainerState
from strata_core.training.reports import ReportQueue, StepReport
from strata_core.training.run.folder import RunFolder
from strata_core.training.schedule import CosineSchedule
from strata_core.training.step import TrainingStep
from strata_core.training.stop import REASONS, StopRequests
from strata_core.training.task import EvaluationContext, EvaluationStopped, StepPlan, Task

FINISHED = "finished"
PATIENCE = "patience"
PREEMPTED = "preempted"


class Engine:
    """Trains a task's model in a run folder.

    Args:
        task: the kind of model and its data.
        model: the task's model, on `device`.
        recipe: the run's settings.
        run: where it is recorded; held by the first rank.
        store: the run's checkpoints, None on other ranks.
        device, ranks, precision: where, with whom and how to compute.
        observer: shown what happens; the first rank's is the one people see.
        stop: requests to stop.
        tokenizer: becomes each checkpoint's tokenizer.json.
    """

    def __init__(
        self,
        task: Task,
        model: nn.Module,
        recipe: TrainingRecipe,
        run: RunFolder,
        store: CheckpointStore | None,
        *,
        device: torch.device,
        ranks: Ranks,
        precision: Precision,
        observer: Observer,
        stop: StopRequests,
        tokenizer: bytes | None,
    ) -> None:
        self.task = task
        self.model = model
        self.recipe = recipe
        self.run = run
        self.ranks = ranks
        self.state = TrainerState()
        self._device = device
        self._observer = observer
        self._stop = stop
        self._tokenizer = tokenizer
        self._step = TrainingStep(task, model, recipe, device, ranks, precision)
        self._schedule = CosineSchedule(
            peak=recipe.optimizer.lr,
            final=recipe.optimizer.min_lr,
            warmup_steps=recipe.optimizer.warmup_steps,
            total_steps=recipe.optimizer.schedule_steps,
        )
        self._weights = torch.tensor(list(task.loss_weights.values())).to(device, self._step.report_dtype)
        self._no_stops = torch.zeros(len(REASONS)).to(device, self._step.report_dtype)
        self._reports = ReportQueue(device)
        self._store = store
        self._saved_step = 0
        self._stopped_by: str | None = None
        self._clock = _Clock()

    def restore(self, checkpoint: LoadedCheckpoint) -> None:
        """Takes over everything a checkpoint of this run holds.

        Raises:
            DataError: it does not fit the model.
        """
        copy_tensors(checkpoint.model, model_tensors(self.model), source=str(checkpoint.path))
        load_optimizer_state(self._step.optimizer, self._step.parameters, checkpoint.optimizer)
        self._step.average.load(checkpoint.optimizer)
        self.state = TrainerState.from_json(checkpoint.trainer)
        try:
            self._step.guard.load(checkpoint.trainer["guard"])
            self._step.scale.load(checkpoint.trainer["loss_scale"])
        except (KeyError, TypeError) as error:
            raise DataError(f"{checkpoint.path}: trainer.json lacks what resuming needs: {error}") from None
        self._saved_step = self.state.progress.step

    def train(self, *, until_step: int | None = None) -> str:
        """Runs until the recipe's last step, patience, or a request to stop; the newest state is in a checkpoint then.

        Args:
            until_step: leave after this step instead, without what is due at the recipe's last step.

        Returns:
            FINISHED, PATIENCE or PREEMPTED.

        Raises:
            DivergedError: too many non-finite updates in a row; the checkpoints saved before are intact.
            StorageError: a record or a checkpoint could not be written.
        """
        last_step = self.recipe.run.max_steps if until_step is None else until_step
        self.model.train()
        loader = BatchLoader(
            self.task,
            self.ranks,
            self._device,
            workers=self.recipe.batch.num_workers,
            first_step=self.state.progress.step,
            end_step=last_step,
        )
        try:
            self._catch_up()
            self._clock.start(self.state.progress)
            if self._stopped_by is None and not self._out_of_patience:
                for plan, batches in loader:
                    step = self.state.progress.step
                    rate = self._schedule.rate(step)
                    sums = self._step.accumulate(plan, batches, step)
                    losses, stops = self._share(sums, plan)
                    if self._store is not None:
                        self._store.wait_for_copy()
                    outcome = self._step.update(losses, rate, step)
                    self.state.progress = self.state.progress.after(plan)
                    self._post(rate, losses, outcome, stops)
                    self._take(self._reports.ready())
                    self._at_step_end()
                    if self._stopped_by is not None or self._out_of_patience:
                        break
            self._finish()
        finally:
            loader.close()
        if self.state.progress.step == last_step and not self.state.evaluation_pending:
            return FINISHED
        return PATIENCE if self._out_of_patience else PREEMPTED

    def _catch_up(self) -> None:
        """Does the evaluation that a stop cut off, so that the run goes on as if there had been none."""
        if self.state.evaluation_pending:
            best = self._evaluate()
            if not self.state.evaluation_pending:
                self._save(best=best)

    def _share(self, sums: Tensor, plan: StepPlan) -> tuple[Tensor, Tensor]:
        """The one all-reduce of a step: loss sums and stop requests of all ranks, as losses and flags."""
        flags = torch.tensor(self._stop.flags()).to(sums) if self._stop.requested else self._no_stops
        shared = self.ranks.sum(torch.cat([sums.flatten(), flags]))
        totals = shared[: sums.numel()].view_as(sums).sum(dim=0)
        counts = [plan.counts[name] or 1 for name in self.task.loss_weights]
        losses = torch.stack([total / count for total, count in zip(totals, counts, strict=True)])
        return losses, shared[sums.numel() :]

    def _post(self, rate: float, losses: Tensor, outcome: Mapping[str, Tensor], stops: Tensor) -> None:
        figures = [(losses * self._weights).sum(), outcome["grad_norm"], outcome["skipped"], outcome["halted"]]
        others = torch.stack([figure.to(losses.dtype) for figure in figures])
        self._reports.post(self.state.progress, rate, losses, torch.cat([others, stops]))

    def _take(self, reports: list[StepReport]) -> None:
        """Draws the consequences of steps whose figures have arrived."""
        for report in reports:
            step = report.progress.step
            loss = report.loss if math.isfinite(report.loss) else None
            if step == 1:
                self.state.first_loss = loss
            self.state.last_loss = loss
            if report.skipped and self.ranks.is_first:
                self.run.event("skipped update", step, loss=report.loss, grad_norm=report.grad_norm)
            if report.halted:
                self._diverged(report)
            if step % self.recipe.run.log_every == 0 or step == self.recipe.run.max_steps:
                self._log(report)
            if any(report.stops) and self._stopped_by is None:
                self._stopped_by = REASONS[report.stops.index(True)]

    def _log(self, report: StepReport) -> None:
        record: dict[str, Any] = {
            "step": report.progress.step,
            "loss": report.loss,
            **{f"loss_{name}": loss for name, loss in zip(self.task.loss_weights, report.losses, strict=True)},
            "lr": report.rate,
            "grad_norm": report.grad_norm,
            "tokens_seen": report.progress.tokens,
            "samples_seen": report.progress.samples,
            "timing": {**self._clock.lap(report.progress), "memory_bytes": peak_bytes(self._device)},
        }
        if self.ranks.is_first:
            self.run.metrics.append(record)
            self.run.log(
                f"step {record['step']}: loss {record['loss']:.6g}, lr {record['lr']:.4g}, "
                f"gradient norm {record['grad_norm']:.4g}"
            )
            self._observer.step_logged(record)

    def _diverged(self, report: StepReport) -> None:
        step = report.progress.step
        limit = self.recipe.optimizer.nonfinite_limit
        samples = ", ".join(str(micro_batch) for micro_batch in self.task.plan(step - 1).micro_batches)
        if self.ranks.is_first:
            self.run.event("diverged", step, loss=report.loss, grad_norm=report.grad_norm)
        raise DivergedError(
            f"training diverged at step {step}: {limit} updates in a row were not finite and were skipped "
            f"(loss {report.loss}, gradient norm {report.grad_norm}, learning rate {report.rate:g}, "
            f"samples {samples:.400})",
            hint="the checkpoints saved before are intact; start again with a lower optimizer.lr or a longer warm-up",
        )

    def _at_step_end(self) -> None:
        """Evaluation and checkpoint, where they are due."""
        step = self.state.progress.step
        last = step == self.recipe.run.max_steps
        every = self.recipe.evaluation.every
        best = False
        if every and (step % every == 0 or last):
            self._take(self._reports.flush())
            best = self._evaluate()
        every = self.recipe.checkpoint.every
        if (best or (every and step % every == 0)) and not last and self._stopped_by is None:
            self._save(best=best)
        if self._store is not None:
            self._store.check()

    def _evaluate(self) -> bool:
        """Measures on the validation split; True where the model is the best so far."""
        step = self.state.progress.step
        started = time.perf_counter()
        self.model.eval()
        try:
            with torch.no_grad(), self._step.average.in_place():
                metrics = self.task.evaluate(self.model, self._evaluation_context())
        except EvaluationStopped:
            self.state.evaluation_pending = True
            self._stopped_by = self._stop.reason or "a request to another rank"
            return False
        finally:
            self.model.train()
        self.state.evaluation_pending = False
        best = self._judge(metrics)
        seconds = time.perf_counter() - started
        self._clock.leave_out(seconds)
        if self.ranks.is_first:
            record = {"step": step, **metrics, "best": best, "timing": {"seconds": seconds}}
            self.run.evaluations.append(record)
            self._observer.evaluated(record)
        return best

    def _evaluation_context(self) -> EvaluationContext:
        return EvaluationContext(
            device=self._device,
            ranks=self.ranks,
            autocast=self._step.autocast,
            stop_requested=lambda: self.ranks.any(self._stop.requested, self._device),
            progress=SlowStage(self._observer, "evaluation", "batches").advance,
        )

    def _judge(self, metrics: Mapping[str, float]) -> bool:
        table = self.recipe.evaluation
        value, best = metrics[table.metric], self.state.best
        sign = 1.0 if self.task.metric_directions[table.metric] == "min" else -1.0
        if math.isfinite(value) and (best is None or sign * value < sign * best["value"] - table.min_delta):
            self.state.best = {"metric": table.metric, "value": value, "step": self.state.progress.step}
            self.state.evaluations_without_gain = 0
            return True
        self.state.evaluations_without_gain += 1
        return False

    @property
    def _out_of_patience(self) -> bool:
        return self.state.is_out_of_patience(self.recipe)

    def _finish(self) -> None:
        """The last checkpoint, on every way out but an error."""
        self._take(self._reports.flush())
        step = self.state.progress.step
        if step != self._saved_step or step == 0:
            best = self.state.best is not None and self.state.best["step"] == step
            self._save(best=best, background=False)
        if self._store is not None:
            self._store.wait()
        if self._stopped_by is not None and self.ranks.is_first:
            self.run.event(PREEMPTED, step, reason=self._stop.reason or self._stopped_by)

    def _save(self, *, best: bool, background: bool = True) -> None:
        self._take(self._reports.flush())
        step = self.state.progress.step
        self._saved_step = step
        if self._store is None:
            return
        self.run.sync()
        started = time.perf_counter()
        self._store.save(step, self.checkpoint_state(), best=best, background=background)
        self._clock.leave_out(time.perf_counter() - started)

    def checkpoint_state(self) -> CheckpointState:
        """What a checkpoint would hold now, as live tensors; the reports of all steps have to be taken."""
        trainer = {
            **self.state.to_json(),
            "guard": self._step.guard.state(),
            "loss_scale": self._step.scale.state(),
        }
        return CheckpointState(
            config=self.task.config(),
            model=model_tensors(self.model) | self._step.average.averages(),
            optimizer=optimizer_state(self._step.optimizer, self._step.parameters) | self._step.average.iterates(),
            trainer=trainer,
            tokenizer=self._tokenizer,
            parents=(self.run.as_parent(),),
        )


class _Clock:
    """Times training between log steps, without what evaluation and saving take."""

    def start(self, progress: Any) -> None:
        self._progress = progress
        self._since = time.perf_counter()

    def leave_out(self, seconds: float) -> None:
        if hasattr(self, "_since"):
            self._since += seconds

    def lap(self, progress: Any) -> dict[str, float]:
        seconds = max(time.perf_counter() - self._since, 1e-9)
        steps = max(progress.step - self._progress.step, 1)
        tokens = progress.tokens - self._progress.tokens
        self.start(progress)
        return {"tokens_per_second": tokens / seconds, "step_seconds": seconds / steps}

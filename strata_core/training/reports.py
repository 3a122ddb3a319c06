"""Brings each step's figures to the host without making the device wait."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor

from strata_core.training.progress import Progress


@dataclass(frozen=True)
class StepReport:
    """The figures of one step, on the host.

    Attributes:
        progress: after the step.
        rate: the learning rate used.
        losses: each loss over the global batch, divided by its count, in the order of the task's weights.
        loss: their weighted sum.
        grad_norm: unclipped.
        skipped: whether the guard skipped the update.
        halted: whether the limit of consecutive non-finite updates is reached.
        stops: for each reason of `stop.REASONS`, whether some rank asked for a stop.
    """

    progress: Progress
    rate: float
    losses: tuple[float, ...]
    loss: float
    grad_norm: float
    skipped: bool
    halted: bool
    stops: tuple[bool, ...]


@dataclass
class _Sent:
    progress: Progress
    rate: float
    n_losses: int
    figures: Tensor
    event: torch.cuda.Event | None


class ReportQueue:
    """Figures on their way from the device.

    On CUDA a step's figures are read while the next step runs; elsewhere at once. Every rank reads with the same lag,
    so decisions that follow from them are taken at the same step everywhere.
    """

    def __init__(self, device: torch.device) -> None:
        self._lag = 1 if device.type == "cuda" else 0
        self._sent: deque[_Sent] = deque()

    def post(self, progress: Progress, rate: float, losses: Tensor, others: Tensor) -> None:
        """Sends a step's figures off.

        Args:
            losses: [losses].
            others: loss, grad_norm, skipped, halted, then the stop flags.
        """
        figures = torch.cat([losses, others])
        event = None
        if self._lag:
            figures = torch.empty_like(figures, device="cpu", pin_memory=True).copy_(figures, non_blocking=True)
            event = torch.cuda.Event()
            event.record()
        self._sent.append(_Sent(progress, rate, len(losses), figures, event))

    def ready(self) -> list[StepReport]:
        """The reports of steps that are due to be read."""
        return self._take(self._lag)

    def flush(self) -> list[StepReport]:
        """The reports of all steps posted."""
        return self._take(0)

    def _take(self, left: int) -> list[StepReport]:
        reports = []
        while len(self._sent) > left:
            sent = self._sent.popleft()
            if sent.event is not None:
                sent.event.synchronize()
            values = sent.figures.tolist()
            loss, grad_norm, skipped, halted, *stops = values[sent.n_losses :]
            reports.append(
                StepReport(
                    progress=sent.progress,
                    rate=sent.rate,
                    losses=tuple(values[: sent.n_losses]),
                    loss=loss,
                    grad_norm=grad_norm,
                    skipped=bool(skipped),
                    halted=bool(halted),
                    stops=tuple(bool(stop) for stop in stops),
                )
            )
        return reports

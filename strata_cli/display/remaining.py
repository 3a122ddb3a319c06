"""How long a run still takes, from the steps done in this session."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any


class RemainingTime:
    """Estimates by the mean time of a step since the session's start, evaluations and saves included."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._first_step = 0
        self.max_steps: int | None = None

    def start(self, facts: Mapping[str, Any]) -> None:
        """A run starts or goes on; `facts` may have "first_step" (done before) and "max_steps"."""
        self._began = time.monotonic()
        self._first_step = facts.get("first_step") or 0
        self.max_steps = facts.get("max_steps")

    def step_text(self, record: Mapping[str, Any]) -> str:
        """ "step 10/300", or "step 10" where the end is not known."""
        return f"step {record['step']}" + (f"/{self.max_steps}" if self.max_steps else "")

    def after(self, record: Mapping[str, Any]) -> float | None:
        """Seconds left after a step, None where nothing is left or nothing is known."""
        done = record["step"] - self._first_step
        if not self.max_steps or done <= 0 or record["step"] >= self.max_steps:
            return None
        return (time.monotonic() - self._began) / done * (self.max_steps - record["step"])

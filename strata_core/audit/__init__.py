"""Checkpoints of unknown origin, read as data: nothing in them is executed, imported or trusted."""

from strata_core.audit.inspection import inspect_checkpoint
from strata_core.audit.report import Report

__all__ = ["Report", "inspect_checkpoint"]

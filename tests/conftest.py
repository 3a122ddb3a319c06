"""Fixtures that several rooms' tests share."""

from tests.strata_core.training.conftest import byte_corpus

__all__ = ["byte_corpus"]

"""Fixtures that several rooms' tests share."""

from tests.strata_core.conftest import byte_corpus

__all__ = ["byte_corpus"]

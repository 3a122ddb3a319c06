from __future__ import annotations

from pathlib import Path

import pytest
from manifest_chain import Chain, build_chain


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    """A finished run and its corpus."""
    return build_chain(tmp_path)


@pytest.fixture
def live_chain(tmp_path: Path) -> Chain:
    """A run that is not over, and its corpus."""
    return build_chain(tmp_path, final=False)

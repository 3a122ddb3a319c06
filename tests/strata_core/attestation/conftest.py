"""Makes the chain of the manifests' tests importable: what they tamper with is signed here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "manifest"))

from manifest_chain import Chain, build_chain

from tests.strata_core.attestation.signers import Signer, make_signer


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    """A finished run and its corpus."""
    return build_chain(tmp_path)


@pytest.fixture(scope="session")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    """A key with its public half, and a certificate under an intermediate one and a root."""
    return make_signer(tmp_path_factory.mktemp("signer"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder that has no manifest, as other programs leave them."""
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / ".github").mkdir()
    for name, content in {
        "config.json": b"{}",
        "weights.bin": bytes(range(256)) * 40,
        "sub/deep.bin": b"deep",
        "sub.txt": b"beside",
        "empty": b"",
        "données-é.txt": b"accented",
        ".github/workflow": b"left out",
    }.items():
        (folder / name).write_bytes(content)
    return folder

"""`--attest` and `--bom` as people and programs meet them: what is written, and when nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strata_cli import main
from strata_core.manifest import Manifest, hash_files


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "train.bin").write_bytes(b"tokens")
    Manifest("corpus", files=tuple(hash_files(folder, ["train.bin"]))).write(folder)
    monkeypatch.chdir(tmp_path)
    return folder


def test_what_holds_is_attested_to(corpus, capsys):
    assert main.run(["verify-manifest", "corpus", "--attest", "a.json"]) == 0
    assert "statement: a.json" in capsys.readouterr().out.splitlines()
    statement = json.loads((corpus.parent / "a.json").read_bytes())
    assert [subject["name"] for subject in statement["subject"]] == ["manifest.json", "train.bin"]
    assert statement["predicate"]["files"]["checked"] == 1
    assert main.run(["verify-manifest", "corpus", "--attest", "b.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statement"] == "b.json"


def test_what_does_not_hold_is_not_attested_to(corpus, capsys):
    (corpus / "train.bin").write_bytes(b"tampered")
    assert main.run(["verify-manifest", "corpus", "--attest", "a.json"]) == 4
    assert "statement: not written, since not all holds" in capsys.readouterr().out
    assert not (corpus.parent / "a.json").exists()


def test_a_place_that_is_taken_is_refused_before_anything_is_read(corpus, capsys):
    (corpus.parent / "a.json").write_bytes(b"mine")
    assert main.run(["verify-manifest", "corpus", "--attest", "a.json"]) == 6
    assert (corpus.parent / "a.json").read_bytes() == b"mine"
    assert "choose another --attest" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--statement", "slsa"],
        ["--attest", "a.json", "--quick"],
        ["--attest", "a.json", "--statement", "slsa"],
        ["--attest", "a.json", "--statement", "replay"],
    ],
)
def test_what_cannot_be_stated_of_a_corpus_is_a_usage_error(corpus, options, capsys):
    assert main.run(["verify-manifest", "corpus", *options]) == 2
    assert not (corpus.parent / "a.json").exists()


def test_a_bill_is_for_what_strata_wrote(corpus, tmp_path, capsys):
    import numpy as np
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(2, dtype=np.float32)}, tmp_path / "model.safetensors")
    assert main.run(["inspect-ckpt", "model.safetensors", "--bom", "b.json"]) == 5
    assert "there is no manifest.json" in capsys.readouterr().err
    assert not (tmp_path / "b.json").exists()
    (tmp_path / "b.json").write_bytes(b"mine")
    assert main.run(["inspect-ckpt", "model.safetensors", "--bom", "b.json"]) == 6

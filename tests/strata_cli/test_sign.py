"""`strata sign` and `strata verify-manifest --signature` as people and programs meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strata_cli import main
from tests.strata_core.attestation.signers import Signer, make_signer


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return make_signer(tmp_path_factory.mktemp("signer"))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model").mkdir()
    for name in ("config.json", "weights.bin"):
        (tmp_path / "model" / name).write_bytes(name.encode() * 9)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "model"


def signed(signer: Signer) -> None:
    assert main.run(["sign", "model", "--key", str(signer.key)]) == 0


def test_a_signature_lies_here_under_the_name_of_what_is_signed_and_holds(model, signer, capsys):
    signed(signer)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("signed: model ") and first.endswith("in model.sig") and "2 files, 198 B" in first
    assert second == "next: strata verify-manifest model --signature model.sig --public-key PUBLIC.pem"
    command = ["verify-manifest", "model", "--signature", "model.sig", "--public-key", str(signer.public)]
    assert main.run(command) == 0
    signature, summary, _ = capsys.readouterr().out.splitlines()
    assert signature.startswith("signature: holds, by key ") and signature.endswith("2 files listed")
    assert summary == "ok: folder, 2 files checked, 198 B read"


def test_every_fault_and_the_signatures_are_told_with_exit_code_4(model, signer, capsys, tmp_path):
    signed(signer)
    (model / "weights.bin").write_bytes(b"x")
    (model / "config.json").unlink()
    (model / "new").write_bytes(b"x")
    other = make_signer(tmp_path / "other")
    capsys.readouterr()
    command = ["verify-manifest", "model", "--signature", "model.sig", "--json", "--public-key"]
    assert main.run([*command, str(signer.public)]) == 4
    result = json.loads(capsys.readouterr().out)
    assert (result["verdict"], result["changed"], result["missing"], result["extra"], result["other"]) == (
        "failed", ["weights.bin"], ["config.json"], ["new"], [],
    )  # fmt: skip
    assert result["signature"]["holds"] and result["signature"]["subject"]["name"] == "model"
    assert main.run([*command, str(other.public)]) == 4
    result = json.loads(capsys.readouterr().out)
    assert result["other"] == ["model.sig"] and not result["signature"]["holds"]
    assert result["changed"] == ["weights.bin"]


def test_a_signature_of_somebody_else_leads_back_to_who_signed(model, signer, capsys, tmp_path):
    signed(signer)
    other = make_signer(tmp_path / "other")
    capsys.readouterr()
    assert main.run(["verify-manifest", "model", "--signature", "model.sig", "--public-key", str(other.public)]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("other: model.sig: the signature does not hold: it names another key, ")
    assert lines[1].startswith("signature: does not hold: model ") and lines[-1].startswith("next: ask who signed")


def test_a_bundle_that_cannot_be_used_ends_with_5_and_a_missing_one_with_2(model, signer, capsys):
    (model.parent / "empty.sig").write_bytes(b"")
    command = ["verify-manifest", "model", "--public-key", str(signer.public), "--signature"]
    assert main.run([*command, "empty.sig"]) == 5
    assert main.run([*command, "gone.sig"]) == 2
    assert "the file is empty" in capsys.readouterr().err


def test_a_place_that_is_taken_is_left_as_it_is(model, signer, capsys):
    (model.parent / "model.sig").write_bytes(b"mine")
    assert main.run(["sign", "model", "--key", str(signer.key)]) == 6
    assert (model.parent / "model.sig").read_bytes() == b"mine"
    assert main.run(["sign", "model", "--key", str(signer.key), "--out", "no/where.sig"]) == 2


def test_json_says_what_was_signed_and_nothing_half_written_is_left(model, signer, capsys):
    command = ["sign", "model", "--key", str(signer.key), "--cert", str(signer.chain), "--out", "m.sig", "--json"]
    assert main.run(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["signature"], result["method"], result["signer"]) == ("m.sig", "certificate", "CN=signer")
    assert (result["files"], result["bytes"], result["curve"]) == (2, 198, "P-256")
    (model / "weights.bin").unlink()
    (model / "config.json").unlink()
    assert main.run(["sign", "model", "--key", str(signer.key), "--out", "n.sig"]) == 5
    assert sorted(path.name for path in model.parent.iterdir()) == ["m.sig", "model"]


def test_a_signature_inside_the_folder_is_told_of(model, signer, capsys):
    assert main.run(["sign", "model", "--key", str(signer.key), "--out", "model/model.sig"]) == 0
    assert "note: it lies in what it signs" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ["--public-key", "k.pem"],
        ["--cert-chain", "c.pem"],
        ["--signature", "s.sig", "--public-key", "k", "--cert-chain", "c"],
    ],
)
def test_options_that_do_not_go_together_are_refused(model, options, capsys):
    assert main.run(["verify-manifest", "model", *options]) == 2


def test_trust_that_is_not_given_is_asked_for(model, signer, capsys):
    signed(signer)
    assert main.run(["verify-manifest", "model", "--signature", "model.sig"]) == 2
    assert "--public-key FILE" in capsys.readouterr().err

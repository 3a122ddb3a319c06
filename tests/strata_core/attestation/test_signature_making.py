"""What a signature says, worked out here from the specification's words, and what is refused before it is made."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_public_key,
)
from cryptography.x509 import load_der_x509_certificate

from strata_core.attestation.signing import sign
from strata_core.attestation.statement import subject_digest
from strata_core.errors import DataError, UsageError, VerificationError
from tests.strata_core.attestation.signers import CURVES, Signer, make_signer, write_certificates, write_key

HASHES = {"P-256": hashes.SHA256, "P-384": hashes.SHA384, "P-521": hashes.SHA512}


def test_the_statement_lists_all_files_in_order_with_the_digests_that_the_specification_derives(model, signer):
    signed = sign(model, key=signer.key, out=model / "model.sig")
    bundle = json.loads(signed.data)
    assert set(bundle) == {"mediaType", "verificationMaterial", "dsseEnvelope"}
    assert bundle["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert bundle["dsseEnvelope"]["payloadType"] == "application/vnd.in-toto+json"
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://model_signing/signature/v1.0"
    resources = statement["predicate"]["resources"]
    assert [item["name"] for item in resources] == [
        "config.json", "données-é.txt", "empty", "sub.txt", "sub/deep.bin", "weights.bin",
    ]  # fmt: skip
    for item in resources:
        assert item["algorithm"] == "sha256"
        assert item["digest"] == hashlib.sha256((model / item["name"]).read_bytes()).hexdigest()
    joined = b"".join(bytes.fromhex(item["digest"]) for item in resources)
    assert statement["subject"] == [{"name": "model", "digest": {"sha256": hashlib.sha256(joined).hexdigest()}}]
    assert statement["predicate"]["serialization"] == {
        "method": "files",
        "hash_type": "sha256",
        "allow_symlinks": False,
        "ignore_paths": [".git", ".gitattributes", ".github", ".gitignore", "model.sig"],
    }
    assert (signed.files, signed.method) == (6, "key")


def test_the_subject_of_the_specifications_own_example_comes_out() -> None:
    resources = (
        "bc9a717db6064a32cbe9eae6fc40651dd6d36ef1757183f590eff2b1765d7ebc",
        "32dcb1f8e1ae52d5963e56a6ba06ab58b424c15ed2a6b70d2feca1d089370028",
    )
    assert subject_digest(resources) == "92745110b1ab4368471cbe31664e10174e954b113a3df333db860317b2c6dec4"


@pytest.mark.parametrize("curve", CURVES)
def test_the_signature_is_over_the_envelope_with_the_hash_of_the_curve(model, tmp_path, curve):
    signer = make_signer(tmp_path / "keys", curve)
    signed = sign(model, key=signer.key)
    bundle = json.loads(signed.data)
    payload = base64.b64decode(bundle["dsseEnvelope"]["payload"])
    encoded = f"DSSEv1 28 application/vnd.in-toto+json {len(payload)} ".encode() + payload
    public = load_pem_public_key(signer.public.read_bytes())
    assert isinstance(public, ec.EllipticCurvePublicKey)
    [signature] = bundle["dsseEnvelope"]["signatures"]
    public.verify(base64.b64decode(signature["sig"]), encoded, ec.ECDSA(HASHES[curve]()))
    hint = hashlib.sha256(signer.public.read_bytes()).hexdigest()
    assert bundle["verificationMaterial"] == {"publicKey": {"hint": hint}, "tlogEntries": []}
    assert (signed.curve, signed.signer) == (curve, hint)
    assert sign(model, key=signer.key).data == signed.data


def test_a_certificate_goes_into_the_bundle_with_those_above_it_the_signers_first(model, signer):
    signed = sign(model, key=signer.key, certificates=signer.chain)
    items = json.loads(signed.data)["verificationMaterial"]["x509CertificateChain"]["certificates"]
    found = [load_der_x509_certificate(base64.b64decode(item["rawBytes"])) for item in items]
    assert [item.subject.rfc4514_string() for item in found] == ["CN=signer", "CN=between"]
    assert signed.signer == "CN=signer"


def test_a_single_file_is_signed_under_its_name(model, signer):
    signed = sign(model / "weights.bin", key=signer.key)
    payload = json.loads(base64.b64decode(json.loads(signed.data)["dsseEnvelope"]["payload"]))
    assert payload["subject"][0]["name"] == "weights.bin"
    assert [item["name"] for item in payload["predicate"]["resources"]] == ["weights.bin"]


def test_a_run_is_signed_as_its_manifest_counts_files(chain, signer):
    signed = sign(chain.run, key=signer.key)
    payload = json.loads(base64.b64decode(json.loads(signed.data)["dsseEnvelope"]["payload"]))
    names = {item["name"] for item in payload["predicate"]["resources"]}
    on_disk = {str(path.relative_to(chain.run)) for path in chain.run.rglob("*") if path.is_file()}
    followed = {name for name in on_disk if name.startswith(("checkpoints/latest", "checkpoints/best"))}
    assert names == on_disk - followed - {".lock", "logs/rank-1.log"}
    assert "manifest.json" in names


def test_a_folder_that_is_not_what_its_manifest_says_is_not_signed(chain, signer):
    (chain.run / "recipe.toml").write_bytes(b"[run]\nseed = 2\n")
    with pytest.raises(VerificationError, match="not what its manifest says") as caught:
        sign(chain.run, key=signer.key)
    assert caught.value.problems == ("changed: recipe.toml: another content",)


def test_what_cannot_be_signed_is_named_all_at_once(model, signer):
    os.symlink("config.json", model / "link.json")
    os.mkfifo(model / "pipe")
    (model / "bad\udcff").write_bytes(b"x")
    (model / "back\\slash").write_bytes(b"x")
    with pytest.raises(DataError) as caught:
        sign(model, key=signer.key)
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "back\\slash",
        "bad\\xff",
        "link.json",
        "pipe",
    ]


def test_a_folder_without_files_is_refused(tmp_path, signer):
    (tmp_path / "nothing/.git").mkdir(parents=True)
    (tmp_path / "nothing/.git/HEAD").write_bytes(b"x")
    with pytest.raises(DataError, match="no file to sign"):
        sign(tmp_path / "nothing", key=signer.key)


def test_paths_that_are_not_there_are_usage_errors(model, signer, tmp_path):
    for arguments in ({"path": tmp_path / "gone"}, {"key": tmp_path / "gone"}, {"certificates": tmp_path / "gone"}):
        with pytest.raises(UsageError, match="gone"):
            sign(**{"path": model, "key": signer.key, **arguments})


def test_keys_that_cannot_be_used_are_refused_with_the_reason(model, tmp_path):
    for key, reason in (
        (ec.generate_private_key(ec.SECP256K1()), "secp256k1"),
        (rsa.generate_private_key(65537, 2048), "another kind"),
    ):
        with pytest.raises(DataError, match=reason):
            sign(model, key=write_key(tmp_path / "key.pem", key))
    encrypted = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    for content, reason in ((encrypted, "encrypted"), (b"text", "not a private key"), (b"x" * (2 << 20), "2,097,152")):
        (tmp_path / "key.pem").write_bytes(content)
        with pytest.raises(DataError, match=reason):
            sign(model, key=tmp_path / "key.pem")


@pytest.mark.parametrize(
    ("leaf", "reason"),
    [({"days": (-9, -2)}, "expired"), ({"days": (2, 9)}, "not valid before"), ({"signs": False}, "key usage")],
)
def test_a_certificate_that_cannot_vouch_is_refused(model, tmp_path, leaf, reason):
    signer = make_signer(tmp_path / "keys", **leaf)
    with pytest.raises(DataError, match=reason):
        sign(model, key=signer.key, certificates=signer.chain)


def test_a_certificate_of_another_key_is_refused(model, tmp_path, signer: Signer):
    other = make_signer(tmp_path / "other")
    with pytest.raises(DataError, match="not that of the key"):
        sign(model, key=signer.key, certificates=other.chain)
    (tmp_path / "none.pem").write_bytes(signer.public.read_bytes())
    with pytest.raises(DataError, match="no certificate"):
        sign(model, key=signer.key, certificates=tmp_path / "none.pem")
    assert write_certificates(tmp_path / "empty.pem").read_bytes() == b""


def test_without_the_package_the_error_names_the_extra(model, signer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(UsageError, match="cryptography") as caught:
        sign(model, key=signer.key)
    assert "strata[sign]" in (caught.value.hint or "")

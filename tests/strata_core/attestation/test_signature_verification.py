"""Verifying by a signature: what was done to the files is named, and nobody but the trusted signer is taken for him."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from strata_core.attestation.bundle import signed_bytes
from strata_core.attestation.keys import signature_of
from strata_core.attestation.signing import sign
from strata_core.attestation.verification import Trust, verify_signature
from strata_core.errors import DataError, UsageError
from strata_core.manifest import Manifest
from tests.strata_core.attestation.signers import CURVES, Signer, certificate, make_signer, write_certificates
from tests.strata_core.manifest.test_verification import MORE_FAULTS, TAMPERING


@pytest.fixture
def signature(model: Path, signer: Signer, tmp_path: Path) -> Path:
    """Of the folder, by the key."""
    return signed(model, tmp_path / "model.sig", signer)


def signed(path: Path, out: Path, signer: Signer, *, chain: bool = False) -> Path:
    out.write_bytes(sign(path, key=signer.key, certificates=signer.chain if chain else None, out=out).data)
    return out


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


def resign(path: Path, signer: Signer, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes the statement and signs it again, as somebody with the key could."""
    key = load_pem_private_key(signer.key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)

    def changed(bundle: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
        change(statement)
        payload = json.dumps(statement).encode()
        bundle["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()
        bundle["dsseEnvelope"]["signatures"][0]["sig"] = base64.b64encode(
            signature_of(key, signed_bytes(payload))
        ).decode()

    edit(path, changed)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("chain", [False, True])
def test_what_was_signed_holds(model, tmp_path, curve, chain):
    signer = make_signer(tmp_path / "keys", curve)
    bundle = signed(model, tmp_path / "model.sig", signer, chain=chain)
    trust = Trust(cert_chain=signer.root) if chain else Trust(public_key=signer.public)
    report, outcome = verify_signature(model, bundle, trust)
    assert report.ok and report.checked == 6 and report.notes == (".github: not covered by the signature",)
    assert (outcome.holds, outcome.identity, outcome.files) == (True, "checked", 6)
    assert outcome.subject[0] == "model"


@pytest.mark.parametrize("tamper", TAMPERING, ids=lambda tamper: tamper.__name__)
def test_one_change_to_a_signed_run_is_found_and_named(chain, signer, tmp_path, tamper):
    bundle = signed(chain.run, tmp_path / "run.sig", signer)
    tamper(chain)
    report, outcome = verify_signature(chain.run, bundle, Trust(public_key=signer.public))
    corpus = str(chain.corpus.resolve())
    found = {(fault.kind, fault.path.replace(corpus, "CORPUS")) for fault in report.faults}
    assert TAMPERING[tamper] in found - MORE_FAULTS.get(tamper, set())
    assert outcome.holds


def test_a_change_that_all_manifests_were_rewritten_to_hide_is_found(chain, signer, tmp_path):
    bundle = signed(chain.run, tmp_path / "run.sig", signer)
    (chain.run / "recipe.toml").write_bytes(b"[run]\nseed = 2\n")
    from strata_core.manifest import hash_file

    state = Manifest.read(chain.run).state
    files = (hash_file(chain.run / "recipe.toml", name="recipe.toml"),)
    chain.rewrite(chain.run, files=files)
    digest = Manifest.read(chain.run).digest
    for item in state["checkpoints"]:
        parent = Manifest.read(chain.run / item["path"]).parents[0]
        chain.rewrite(chain.run / item["path"], parents=(type(parent)("run", digest, "../.."),))
        item["digest"] = Manifest.read(chain.run / item["path"]).digest
    chain.rewrite(chain.run, files=files, state=state)
    report, _ = verify_signature(chain.run, bundle, Trust(public_key=signer.public))
    assert {"recipe.toml", "manifest.json"} <= set(report.paths("changed"))
    assert {fault.what for fault in report.faults} == {"another content"}


def test_everything_done_to_a_folder_without_a_manifest_is_told_at_once(model, signer, signature):
    (model / "weights.bin").write_bytes(b"other")
    (model / "empty").unlink()
    (model / "new.py").write_bytes(b"x")
    os.rename(model / "config.json", model / "Config.json")
    shutil.move(model / "sub.txt", model.parent / "outside.txt")
    os.symlink("../outside.txt", model / "sub.txt")
    (model / "sub/.git").mkdir()
    (model / "sub/.git/hook").write_bytes(b"x")
    (model / ".git").mkdir()
    (model / "plots").mkdir()
    report, outcome = verify_signature(model, signature, Trust(public_key=signer.public))
    assert outcome.holds
    assert {(fault.kind, fault.path) for fault in report.faults} == {
        ("changed", "weights.bin"),
        ("missing", "empty"),
        ("extra", "new.py"),
        ("extra", "sub/.git/hook"),
        ("other", "config.json"),
        ("other", "sub.txt"),
    }
    assert ".git: not covered by the signature" in report.notes


def test_a_signature_inside_its_folder_is_no_part_of_it(chain, model, signer):
    for folder in (chain.run, chain.corpus, model):
        bundle = signed(folder, folder / "model.sig", signer)
        report, outcome = verify_signature(folder, bundle, Trust(public_key=signer.public))
        assert report.ok and outcome.holds, report.faults
        (folder / "other.sig").write_bytes(b"x")
        report, _ = verify_signature(folder, bundle, Trust(public_key=signer.public))
        assert report.paths("extra") == ["other.sig"]


def test_a_single_file_is_verified_whatever_lies_beside_it(model, signer, tmp_path):
    bundle = signed(model / "weights.bin", tmp_path / "weights.sig", signer)
    assert verify_signature(model / "weights.bin", bundle, Trust(public_key=signer.public))[0].ok
    resign(bundle, signer, lambda statement: statement["predicate"]["resources"][0].update(name="."))
    assert verify_signature(model / "weights.bin", bundle, Trust(public_key=signer.public))[0].ok
    (model / "weights.bin").write_bytes(b"other")
    report, _ = verify_signature(model / "weights.bin", bundle, Trust(public_key=signer.public))
    assert report.paths("changed") == ["weights.bin"]


def test_a_copy_under_another_name_holds(model, signer, signature, tmp_path):
    shutil.move(model, tmp_path / "renamed")
    assert verify_signature(tmp_path / "renamed", signature, Trust(public_key=signer.public))[0].ok


def test_quick_reads_no_content(model, signer, signature):
    (model / "weights.bin").write_bytes(b"other")
    report, outcome = verify_signature(model, signature, Trust(public_key=signer.public), quick=True)
    assert report.ok and report.checked_bytes == 0 and outcome.holds


def check_refused(model: Path, bundle: Path, trust: Trust, reason: str) -> None:
    """The signature does not hold for this reason, and what was done to the files is told besides."""
    (model / "weights.bin").write_bytes(b"other")
    report, outcome = verify_signature(model, bundle, trust)
    assert not outcome.holds and reason in outcome.problem, outcome.problem
    assert {(fault.kind, fault.path) for fault in report.faults} == {("other", str(bundle)), ("changed", "weights.bin")}


def test_another_key_is_refused(model, signer, signature, tmp_path):
    other = make_signer(tmp_path / "other")
    check_refused(model, signature, Trust(public_key=other.public), "names another key")
    edit(signature, lambda bundle: bundle["verificationMaterial"]["publicKey"].update(hint=""))
    check_refused(model, signature, Trust(public_key=other.public), "is not the key that signed")


def test_a_changed_statement_is_refused(model, signer, signature):
    def change(bundle: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
        statement["subject"][0]["name"] = "another"
        bundle["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    edit(signature, change)
    check_refused(model, signature, Trust(public_key=signer.public), "is not the key that signed")


def test_a_key_does_not_vouch_for_a_certificate_nor_a_certificate_for_a_key(model, signer, signature, tmp_path):
    by_chain = signed(model, tmp_path / "chain.sig", signer, chain=True)
    check_refused(model, by_chain, Trust(public_key=signer.public), "with a certificate")
    check_refused(model, signature, Trust(cert_chain=signer.root), "with a bare key")


def test_a_certificate_of_another_root_is_refused(model, signer, tmp_path):
    bundle = signed(model, tmp_path / "chain.sig", signer, chain=True)
    other = make_signer(tmp_path / "other")
    check_refused(model, bundle, Trust(cert_chain=other.root), "does not lead to a trusted one")
    check_refused(model, bundle, Trust(cert_chain=other.chain), "does not lead to a trusted one")


def test_an_expired_certificate_is_refused(model, signer, tmp_path):
    from datetime import UTC, datetime, timedelta

    bundle = signed(model, tmp_path / "chain.sig", signer, chain=True)
    later = datetime.now(UTC) + timedelta(days=400)
    _, outcome = verify_signature(model, bundle, Trust(cert_chain=signer.root), now=later)
    assert "expired" in outcome.problem and not outcome.holds


@pytest.mark.parametrize(
    ("between", "reason"),
    [({"authority": False}, "does not lead"), ({"authority": True, "days": (-9, -2)}, "does not lead")],
)
def test_who_may_not_issue_certificates_makes_no_signer(model, tmp_path, between, reason):
    root_key, between_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    folder = tmp_path / "keys"
    signer = make_signer(folder)
    issuer = certificate("between", between_key, ("root", root_key), **between)
    own = certificate("signer", key, ("between", between_key))
    from tests.strata_core.attestation.signers import write_key

    write_key(folder / "key.pem", key)
    write_certificates(folder / "chain.pem", own, issuer)
    write_certificates(folder / "root.pem", certificate("root", root_key, authority=True))
    bundle = signed(model, tmp_path / "chain.sig", signer, chain=True)
    check_refused(model, bundle, Trust(cert_chain=signer.root), reason)


def test_a_path_longer_than_the_root_allows_is_refused(model, tmp_path):
    from tests.strata_core.attestation.signers import write_key

    root_key, between_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    signer = make_signer(tmp_path / "keys")
    write_key(signer.key, key)
    between = certificate("between", between_key, ("root", root_key), authority=True)
    write_certificates(signer.chain, certificate("signer", key, ("between", between_key)), between)
    write_certificates(signer.root, certificate("root", root_key, authority=True, path_length=0))
    bundle = signed(model, tmp_path / "chain.sig", signer, chain=True)
    check_refused(model, bundle, Trust(cert_chain=signer.root), "does not lead to a trusted one")


def test_a_certificate_that_signed_itself_holds_where_it_is_trusted_itself(model, tmp_path):
    signer = make_signer(tmp_path / "keys")
    key = load_pem_private_key(signer.key.read_bytes(), None)
    write_certificates(signer.chain, certificate("alone", key))
    bundle = signed(model, tmp_path / "chain.sig", signer, chain=True)
    assert verify_signature(model, bundle, Trust(cert_chain=signer.chain))[1].holds
    assert not verify_signature(model, bundle, Trust(cert_chain=signer.root))[1].holds


def keyless(path: Path, **changes: Any) -> None:
    def change(bundle: dict[str, Any]) -> None:
        [first, _] = bundle["verificationMaterial"]["x509CertificateChain"]["certificates"]
        bundle["verificationMaterial"] = {"certificate": first, "tlogEntries": [{"logIndex": "1"}], **changes}

    edit(path, change)


def test_a_keyless_bundle_is_checked_but_for_the_identity_and_says_so(model, signer, tmp_path):
    bundle = signed(model, tmp_path / "chain.sig", signer, chain=True)
    keyless(bundle)
    report, outcome = verify_signature(model, bundle, Trust())
    assert report.ok and outcome.holds
    assert (outcome.method, outcome.identity) == ("sigstore", "unchecked")
    assert report.notes[0] == "signed without a key by CN=signer: strata does not check that identity"
    for trust in (Trust(public_key=signer.public), Trust(cert_chain=signer.root)):
        assert not verify_signature(model, bundle, trust)[1].holds
    (model / "weights.bin").write_bytes(b"other")
    assert verify_signature(model, bundle, Trust())[0].paths("changed") == ["weights.bin"]


@pytest.mark.parametrize("keyid", [None, "", "somebody"])
def test_the_name_of_the_key_in_the_envelope_does_not_matter(model, signer, signature, keyid):
    edit(signature, lambda bundle: bundle["dsseEnvelope"]["signatures"][0].update(keyid=keyid))
    assert verify_signature(model, signature, Trust(public_key=signer.public))[1].holds
    edit(signature, lambda bundle: bundle["dsseEnvelope"]["signatures"][0].pop("keyid"))
    assert verify_signature(model, signature, Trust(public_key=signer.public))[1].holds


def test_trust_has_to_be_given_but_for_a_keyless_bundle(model, signer, signature, tmp_path):
    by_chain = signed(model, tmp_path / "chain.sig", signer, chain=True)
    for bundle, option in ((signature, "--public-key"), (by_chain, "--cert-chain")):
        with pytest.raises(UsageError) as caught:
            verify_signature(model, bundle, Trust())
        assert option in (caught.value.hint or "")


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no envelope": (lambda bundle: bundle.pop("dsseEnvelope"), "dsseEnvelope is missing"),
    "no material": (lambda bundle: bundle.pop("verificationMaterial"), "verificationMaterial is missing"),
    "another media type": (
        lambda bundle: bundle.update(mediaType="application/vnd.dev.sigstore.bundle+json;version=0.1"),
        "mediaType",
    ),
    "no media type": (lambda bundle: bundle.pop("mediaType"), "mediaType is missing"),
    "an unknown key": (lambda bundle: bundle.update(messageSignature={}), "unknown key"),
    "an unknown kind of signer": (
        lambda bundle: bundle["verificationMaterial"].update(TlogEntries=[]),
        "unknown key 'TlogEntries'",
    ),
    "a log that is none": (
        lambda bundle: bundle["verificationMaterial"].update(tlogEntries="x"),
        "tlogEntries is not a list",
    ),
    "a key's name that is none": (
        lambda bundle: bundle["dsseEnvelope"]["signatures"][0].update(keyid=1),
        "keyid is not text",
    ),
    "no signature": (lambda bundle: bundle["dsseEnvelope"].update(signatures=[]), "0 signatures"),
    "two signatures": (
        lambda bundle: bundle["dsseEnvelope"].update(signatures=bundle["dsseEnvelope"]["signatures"] * 2),
        "2 signatures",
    ),
    "another payload type": (lambda bundle: bundle["dsseEnvelope"].update(payloadType="text/plain"), "payloadType"),
    "not Base64": (lambda bundle: bundle["dsseEnvelope"].update(payload="?"), "payload is not Base64"),
    "two kinds of signer": (
        lambda bundle: bundle["verificationMaterial"].update(certificate={"rawBytes": "AA=="}),
        "publicKey and certificate",
    ),
    "no kind of signer": (lambda bundle: bundle["verificationMaterial"].pop("publicKey"), "has nothing"),
    "a broken certificate": (
        lambda bundle: bundle.update(
            verificationMaterial={"x509CertificateChain": {"certificates": [{"rawBytes": "AA=="}]}}
        ),
        "certificate 0 cannot be read",
    ),
    "keyless without a log": (
        lambda bundle: bundle.update(verificationMaterial={"certificate": {"rawBytes": "AA=="}, "tlogEntries": []}),
        "transparency log",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bundle_that_cannot_be_used_is_a_data_error(model, signer, signature, name):
    change, reason = BROKEN[name]
    edit(signature, change)
    with pytest.raises(DataError, match=reason):
        verify_signature(model, signature, Trust(public_key=signer.public))


STATEMENTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another predicate": (lambda it: it.update(predicateType="https://slsa.dev/provenance/v1"), "predicateType"),
    "the old predicate": (lambda it: it.update(predicateType="https://model_signing/Digests/v0.1"), "predicateType"),
    "another statement": (lambda it: it.update(_type="https://in-toto.io/Statement/v0.1"), "in-toto"),
    "no predicate": (lambda it: it.pop("predicate"), "no predicate"),
    "no resources": (lambda it: it["predicate"].update(resources=[]), "no resources"),
    "no serialization": (lambda it: it["predicate"].pop("serialization"), "no serialization"),
    "shards": (lambda it: it["predicate"]["serialization"].update(method="shards"), "method is 'shards'"),
    "another hash": (lambda it: it["predicate"]["serialization"].update(hash_type="blake3"), "hash_type"),
    "one resource of another hash": (lambda it: it["predicate"]["resources"][1].update(algorithm="md5"), "md5"),
    "two subjects": (lambda it: it.update(subject=it["subject"] * 2), "single subject"),
    "a subject without a name": (lambda it: it["subject"][0].update(name=""), "no name"),
    "another subject": (lambda it: it["subject"][0]["digest"].update(sha256="0" * 64), "contradicts itself"),
    "everything ignored": (lambda it: it["predicate"]["serialization"].update(ignore_paths=["."]), "ignore_paths"),
    "ignored outside": (lambda it: it["predicate"]["serialization"].update(ignore_paths=["../x"]), "climbs out"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_that_cannot_be_used_is_a_data_error_though_its_signature_holds(model, signer, signature, name):
    change, reason = STATEMENTS[name]
    resign(signature, signer, change)
    with pytest.raises(DataError, match=reason):
        verify_signature(model, signature, Trust(public_key=signer.public))


@pytest.mark.parametrize("name", ["../out", "/etc/hostname", "~x", "a\\b", "./config.json", "sub//deep.bin", ""])
def test_a_resource_that_leads_outside_is_refused_from_its_text_alone(model, signer, signature, name):
    def change(statement: dict[str, Any]) -> None:
        statement["predicate"]["resources"][0]["name"] = name

    os.mkfifo(model.parent / "out")  # whoever opens it waits for ever
    resign(signature, signer, change)
    report, _ = verify_signature(model, signature, Trust(public_key=signer.public))
    assert report.paths("other") == [name] and report.paths("extra") == ["config.json"]


@pytest.mark.parametrize("digest", [None, 1, "", "AB" * 32, "ab" * 31])
def test_a_resource_with_a_malformed_digest_is_named(model, signer, signature, digest):
    resign(signature, signer, lambda it: it["predicate"]["resources"][0].update(digest=digest))
    assert verify_signature(model, signature, Trust(public_key=signer.public))[0].paths("other") == ["config.json"]
    resign(signature, signer, lambda it: it["predicate"]["resources"][0].pop("digest"))
    assert verify_signature(model, signature, Trust(public_key=signer.public))[0].paths("other") == ["config.json"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_bundle_is_a_data_error(model, signer, tmp_path, content):
    (tmp_path / "x.sig").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.sig"):
        verify_signature(model, tmp_path / "x.sig", Trust(public_key=signer.public))


def test_a_key_twice_in_one_object_is_refused_in_bundle_and_statement(model, signer, signature):
    sound = signature.read_bytes()
    signature.write_bytes(sound.replace(b'"payloadType"', b'"payloadType":"text/plain","payloadType"'))
    with pytest.raises(DataError, match="twice"):
        verify_signature(model, signature, Trust(public_key=signer.public))
    signature.write_bytes(sound)

    def twice(bundle: dict[str, Any]) -> None:
        payload = base64.b64decode(bundle["dsseEnvelope"]["payload"])
        doubled = payload.replace(b'"predicateType"', b'"predicateType":"x","predicateType"')
        bundle["dsseEnvelope"]["payload"] = base64.b64encode(doubled).decode()

    edit(signature, twice)
    with pytest.raises(DataError, match="twice"):
        verify_signature(model, signature, Trust(public_key=signer.public))


def test_a_huge_bundle_is_refused_unread(model, signer, tmp_path):
    with open(tmp_path / "huge.sig", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DataError, match="1,099,511,627,776 bytes"):
        verify_signature(model, tmp_path / "huge.sig", Trust(public_key=signer.public))


def test_a_signers_choice_to_follow_links_is_followed(model, signer, signature):
    resign(signature, signer, lambda it: it["predicate"]["serialization"].update(allow_symlinks=True))
    shutil.move(model / "sub.txt", model.parent / "outside.txt")
    os.symlink("../outside.txt", model / "sub.txt")
    assert verify_signature(model, signature, Trust(public_key=signer.public))[0].ok
    (model.parent / "outside.txt").write_bytes(b"other")
    report, _ = verify_signature(model, signature, Trust(public_key=signer.public))
    assert report.paths("changed") == ["sub.txt"]

"""Verifying a folder or a file by a signature: who signed, whether it holds, and every file that is not as signed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strata_core.attestation.bundle import Bundle, Method, read_bundle, signed_bytes
from strata_core.attestation.certificates import (
    chain_problem,
    key_of,
    load_certificates,
    name_of,
    parse_certificates,
)
from strata_core.attestation.keys import fingerprints, is_signed_by, load_public_key
from strata_core.attestation.scope import Place, is_under, left_out_of_run, place_of
from strata_core.attestation.statement import WHOLE_FILE, SignedContent, parse_statement
from strata_core.errors import UsageError
from strata_core.manifest import Fault, Report, verify
from strata_core.manifest.comparison import Survey, compare_folder
from strata_core.manifest.hashing import FileEntry
from strata_core.manifest.names import show_name
from strata_core.manifest.tree import Found
from strata_core.manifest.verification import compare_contents
from strata_core.observer import SILENT, Observer


@dataclass(frozen=True)
class Trust:
    """Whom a verifier trusts: the owner of a public key, or whoever the certificates of a file vouch for."""

    public_key: Path | None = None
    cert_chain: Path | None = None


@dataclass(frozen=True)
class SignatureOutcome:
    """What came out about the signature itself.

    Attributes:
        path: of the bundle, as given.
        method: "key", "certificate" or "sigstore" (signed without a key).
        holds: whether it was made over this statement, by whom it had to be made.
        problem: why it does not hold; empty where it does.
        identity: "checked", or "unchecked" for method "sigstore".
        signer: the fingerprint of the key, or the name in the certificate.
        subject: the name and the digest of what is signed.
        files: how many files the statement lists.
    """

    path: str
    method: Method
    holds: bool
    problem: str
    identity: str
    signer: str
    subject: tuple[str, str]
    files: int

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        name, digest = self.subject
        return {**vars(self), "subject": {"name": name, "sha256": digest}}


def verify_signature(
    path: Path,
    signature: Path,
    trust: Trust,
    *,
    quick: bool = False,
    now: datetime | None = None,
    observer: Observer = SILENT,
) -> tuple[Report, SignatureOutcome]:
    """Holds a folder or a file against a signature, and against its manifest where it has one.

    Where the signature does not hold the files are held against it all the same, so that all is told at once.

    Args:
        path: what was signed.
        signature: the bundle.
        trust: whom to trust.
        quick: names only of what is signed; no content is read.
        now: when certificates have to be valid; None: now.
        observer: told about progress in bytes.

    Returns:
        Every fault, the signature's included, and what is to say about the signature.

    Raises:
        UsageError: a path is not there; no trust is given; the package cryptography is missing.
        DataError: the bundle, the key or the certificates cannot be used.
    """
    place = place_of(path)
    bundle = read_bundle(signature)
    content, faults = parse_statement(bundle.payload, source=str(signature))
    signer, problem = _check_signer(bundle, trust, str(signature), now or datetime.now(UTC))
    if problem:
        faults = [Fault("other", str(signature), f"the signature does not hold: {problem}"), *faults]
    outcome = SignatureOutcome(
        path=str(signature),
        method=bundle.method,
        holds=not problem,
        problem=problem,
        identity="unchecked" if bundle.method == "sigstore" else "checked",
        signer=signer,
        subject=(content.name, content.digest),
        files=len(content.entries),
    )
    own = verify(path, quick=quick, apart=signature, observer=observer) if place.has_list else None
    survey, checked_bytes = _compare(place, signature, content, faults, quick, observer)
    if bundle.method == "sigstore":
        survey.notes.insert(0, f"signed without a key by {signer}: strata does not check that identity")
    return _merged(path, place, own, survey, checked_bytes, quick), outcome


def _check_signer(bundle: Bundle, trust: Trust, source: str, now: datetime) -> tuple[str, str]:
    """Who signed, and why the signature does not hold (empty where it does)."""
    if bundle.method == "key":
        return _check_key(bundle, trust)
    chain = parse_certificates(bundle.certificates, source=source)
    signer, key = name_of(chain[0]), key_of(chain[0], source=source)
    if trust.public_key is not None:
        return signer, "it was made with a certificate, not with a bare key: --public-key cannot vouch for it"
    if bundle.method == "sigstore":
        signer = _identity(chain[0]) or signer
        if trust.cert_chain is not None:
            return signer, "it was made without a key (Sigstore), and --cert-chain cannot vouch for such an identity"
    elif trust.cert_chain is None:
        raise UsageError(f"{source} was signed with a certificate", hint="--cert-chain FILE: certificates you trust")
    else:
        problem = chain_problem(chain, load_certificates(trust.cert_chain), now)
        if problem is not None:
            return signer, problem
    holds = is_signed_by(key, bundle.signature, signed_bytes(bundle.payload))
    return signer, "" if holds else "the key of the certificate did not sign this statement"


def _check_key(bundle: Bundle, trust: Trust) -> tuple[str, str]:
    if trust.cert_chain is not None:
        return bundle.hint, "it was made with a bare key, not with a certificate: --cert-chain cannot vouch for it"
    if trust.public_key is None:
        raise UsageError("the signature was made with a key", hint="--public-key FILE: the key of whom you trust")
    key = load_public_key(trust.public_key)
    known = fingerprints(key)
    if bundle.hint and bundle.hint not in known:
        return known[0], f"it names another key, {bundle.hint:.80}, than {trust.public_key}"
    if not is_signed_by(key, bundle.signature, signed_bytes(bundle.payload)):
        return known[0], f"{trust.public_key} is not the key that signed this statement"
    return known[0], ""


def _identity(certificate: Any) -> str:
    """The address that a keyless certificate names, as it says itself."""
    from cryptography.x509 import RFC822Name, SubjectAlternativeName, UniformResourceIdentifier
    from cryptography.x509.extensions import ExtensionNotFound

    try:
        names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except (ExtensionNotFound, ValueError):
        return ""
    return ", ".join(str(name.value) for name in names if isinstance(name, RFC822Name | UniformResourceIdentifier))


def _compare(
    place: Place, signature: Path, content: SignedContent, faults: list[Fault], quick: bool, observer: Observer
) -> tuple[Survey, int]:
    """Every difference between what is signed and what is there, and how many bytes were hashed."""
    found, unlistable = place.look()
    survey = Survey(faults=[*faults, *unlistable])
    own = place.relative(signature)
    covered = {name: item for name, item in found.items() if name != own and not is_under(name, content.ignored)}
    silent = left_out_of_run(place, found)
    present = [name for name in content.ignored if name in found and name != own and name not in silent]
    survey.notes += [f"{show_name(name)}: not covered by the signature" for name in present]
    if content.follows_links:
        covered = {name: _through_link(place.folder / name, item) for name, item in covered.items()}
    entries = [replace(entry, size=_size(covered, entry)) for entry in _named(content, place)]
    folders = {name for name, item in covered.items() if item.kind == "a folder"} - {entry.path for entry in entries}
    files = {name: item for name, item in covered.items() if name not in folders}
    compare_folder(survey, place.folder, entries, files, refused={fault.path for fault in faults})
    if content.follows_links:
        survey.jobs = [(replace(job, path=Path(os.path.realpath(job.path))), entry) for job, entry in survey.jobs]
    return survey, 0 if quick else compare_contents(survey, observer)


def _named(content: SignedContent, place: Place) -> list[FileEntry]:
    """The entries with their names here: of a model that is one file the name may have been left out."""
    if place.file is not None and [entry.path for entry in content.entries] == [WHOLE_FILE]:
        return [replace(content.entries[0], path=place.file)]
    return list(content.entries)


def _size(found: Mapping[str, Found], entry: FileEntry) -> int:
    item = found.get(entry.path)
    return 0 if item is None else item.size


def _through_link(path: Path, item: Found) -> Found:
    """A link to a file as the file."""
    return Found("a file", os.stat(path).st_size) if item.kind == "a link" and path.is_file() else item


def _merged(path: Path, place: Place, own: Report | None, survey: Survey, checked_bytes: int, quick: bool) -> Report:
    """One report of what the manifest and what the signature shows; a fault that both show is told once."""
    before = () if own is None else own.faults
    told = {(fault.kind, fault.path) for fault in before}
    faults = {*before, *(fault for fault in survey.faults if (fault.kind, fault.path) not in told)}
    described = "folder" if place.file is None else "file"
    return Report(
        path=str(path),
        describes=described if own is None else own.describes,
        digest=None if own is None else own.digest,
        quick=quick,
        checked=survey.checked if own is None else max(own.checked, survey.checked),
        checked_bytes=checked_bytes if own is None else max(own.checked_bytes, checked_bytes),
        faults=tuple(sorted(faults, key=lambda fault: (fault.path, fault.kind, fault.what))),
        notes=(*(() if own is None else own.notes), *survey.notes),
        parents=() if own is None else own.parents,
    )

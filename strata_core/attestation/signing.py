"""Signing a folder or a file: a bundle in the form of Open Model Signing v1.0, to be kept beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from strata_core.attestation.bundle import Bundle, bundle_bytes, signed_bytes
from strata_core.attestation.certificates import key_of, leaf_problem, load_certificates, name_of
from strata_core.attestation.keys import CURVES, fingerprints, load_private_key, signature_of
from strata_core.attestation.scope import Place, is_under, left_out_of_run, place_of
from strata_core.attestation.statement import ALWAYS_IGNORED, parse_statement, statement_bytes
from strata_core.errors import DataError, VerificationError, first_problems
from strata_core.manifest import hash_files, verify
from strata_core.manifest.names import name_problem, show_name
from strata_core.manifest.tree import Found
from strata_core.observer import SILENT, Observer

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


@dataclass(frozen=True)
class Signed:
    """A signature that was made.

    Attributes:
        data: the bundle's file.
        name: of the subject.
        digest: the subject's, in hexadecimal.
        files: how many it covers.
        size: their bytes.
        method: "key" or "certificate".
        signer: the key's fingerprint, or the name in the certificate.
        curve: of the key, such as "P-256".
        ignored: what it does not cover.
    """

    data: bytes
    name: str
    digest: str
    files: int
    size: int
    method: str
    signer: str
    curve: str
    ignored: tuple[str, ...]


def sign(
    path: Path, *, key: Path, certificates: Path | None = None, out: Path | None = None, observer: Observer = SILENT
) -> Signed:
    """Signs what lies at a path; nothing is written.

    A folder that has a manifest is verified first, so that nothing is signed which contradicts what it says of itself.

    Args:
        path: a folder, or one file.
        key: the private key, a PEM file.
        certificates: the certificate of the key and those above it, in this order, a PEM file.
        out: where the signature will lie; that file is no part of the folder.
        observer: told about progress in bytes.

    Raises:
        UsageError: a path is not there, or the package cryptography is not.
        DataError: the key or a certificate cannot be used; there is nothing to sign, or what cannot be signed.
        VerificationError: the folder is not what its manifest says.
    """
    private_key = load_private_key(key)
    chain = [] if certificates is None else _usable_chain(certificates, private_key.public_key(), key)
    place = place_of(path)
    if place.has_list:
        _check_manifest(path, place, out, observer)
    found, faults = place.look()
    if faults:
        raise DataError(f"{path}: {faults[0].path}: {faults[0].what}")
    own = [] if out is None else [name for name in [place.relative(out)] if not name.startswith("..")]
    ignored = [*left_out_of_run(place, found), *own] if place.file is None else []
    names = _names_to_sign(path, {name: item for name, item in found.items() if not is_under(name, _all(ignored))})
    entries = hash_files(place.folder, names)
    payload = statement_bytes(place.name, entries, ignored)
    content, _ = parse_statement(payload, source=str(path))
    pem_fingerprint = fingerprints(private_key.public_key())[0]
    bundle = Bundle(
        method="certificate" if chain else "key",
        payload=payload,
        signature=signature_of(private_key, signed_bytes(payload)),
        hint="" if chain else pem_fingerprint,
        certificates=tuple(_der(certificate) for certificate in chain),
    )
    return Signed(
        data=bundle_bytes(bundle),
        name=content.name,
        digest=content.digest,
        files=len(entries),
        size=sum(entry.size for entry in entries),
        method=bundle.method,
        signer=name_of(chain[0]) if chain else pem_fingerprint,
        curve=CURVES[private_key.curve.name],
        ignored=content.ignored,
    )


def _all(ignored: Sequence[str]) -> list[str]:
    return [*ALWAYS_IGNORED, *ignored]


def _usable_chain(path: Path, public_key: object, key: Path) -> list[Certificate]:
    chain = load_certificates(path)
    if key_of(chain[0], source=str(path)) != public_key:
        raise DataError(
            f"{path}: its first certificate, of {name_of(chain[0])}, is not that of the key {key}",
            hint="the signer's certificate comes first, then those above it",
        )
    problem = leaf_problem(chain[0], datetime.now(UTC))
    if problem is not None:
        raise DataError(f"{path}: {problem}", hint="sign with a certificate that is valid now and made for signatures")
    return chain


def _check_manifest(path: Path, place: Place, out: Path | None, observer: Observer) -> None:
    report = verify(place.folder, apart=out, observer=observer)
    if report.ok:
        return
    raise VerificationError(
        f"{path} is not what its manifest says, so it is not signed",
        problems=first_problems([f"{fault.kind}: {show_name(fault.path)}: {fault.what}" for fault in report.faults]),
        hint="bring back what is named, or, for signatures that lie in it, keep them beside it",
    )


def _names_to_sign(path: Path, found: Mapping[str, Found]) -> list[str]:
    names = []
    problems = []
    for name, item in sorted(found.items()):
        if item.kind == "a folder":
            continue
        problem = name_problem(name) or _encoding_problem(name)
        if item.kind != "a file":
            problem = f"{item.described}; a signature covers regular files"
        if problem is None:
            names.append(name)
        else:
            problems.append(f"{show_name(name)}: {problem}")
    if problems:
        raise DataError(
            f"{path} holds what cannot be signed",
            problems=first_problems(problems),
            hint="take these out or rename them",
        )
    if not names:
        raise DataError(f"{path}: there is no file to sign in it")
    return names


def _encoding_problem(name: str) -> str | None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    return None


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)

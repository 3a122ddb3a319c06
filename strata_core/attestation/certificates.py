"""X.509 certificates of signers (RFC 5280): read from PEM or DER, and whether one may be trusted for a signature."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.attestation.keys import checked_key, read_pem, require_cryptography
from strata_core.errors import DataError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.x509 import Certificate


def load_certificates(path: Path) -> list[Certificate]:
    """The certificates of a PEM file, in its order.

    Raises:
        UsageError: no such file.
        DataError: there is none in it, or one cannot be read.
    """
    require_cryptography()
    from cryptography.x509 import load_pem_x509_certificates

    data = read_pem(path)
    try:
        return load_pem_x509_certificates(data)
    except ValueError:
        is_key = b"PUBLIC KEY" in data
        hint = "a public key is given as --public-key" if is_key else "give certificates in PEM form, one or several"
        raise DataError(f"{path}: holds no certificate that can be read", hint=hint) from None


def parse_certificates(items: Sequence[bytes], *, source: str) -> list[Certificate]:
    """Certificates from DER.

    Raises:
        DataError: one cannot be read.
    """
    require_cryptography()
    from cryptography.x509 import load_der_x509_certificate

    found = []
    for index, item in enumerate(items):
        try:
            found.append(load_der_x509_certificate(item))
        except ValueError:
            raise DataError(f"{source}: certificate {index} cannot be read") from None
    return found


def key_of(certificate: Certificate, *, source: str) -> EllipticCurvePublicKey:
    """The public key of a certificate.

    Raises:
        DataError: it cannot be read, or is not on a curve that model signing knows.
    """
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        key = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise DataError(f"{source}: the key of the certificate cannot be read: {error}") from None
    return checked_key(key, source=source)


def name_of(certificate: Certificate) -> str:
    """The subject as RFC 4514 writes it; the serial number where there is none."""
    return certificate.subject.rfc4514_string() or f"serial number {certificate.serial_number:x}"


def leaf_problem(leaf: Certificate, now: datetime) -> str | None:
    """Why a certificate cannot vouch for a signature at a time whoever issued it, or None."""
    start, end = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    if now > end:
        return f"the certificate of {name_of(leaf)} expired at {end.isoformat()}"
    if now < start:
        return f"the certificate of {name_of(leaf)} is not valid before {start.isoformat()}"
    if not _may_sign(leaf):
        return f"the certificate of {name_of(leaf)} is not for digital signatures (key usage)"
    return None


def _may_sign(leaf: Certificate) -> bool:
    """Key usage digitalSignature, or, where no key usage is given, extended key usage codeSigning."""
    from cryptography.x509 import ExtendedKeyUsage, ExtensionNotFound, KeyUsage
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        extensions = leaf.extensions
    except ValueError:
        return False
    try:
        return extensions.get_extension_for_class(KeyUsage).value.digital_signature
    except ExtensionNotFound:
        pass
    try:
        return ExtendedKeyUsageOID.CODE_SIGNING in extensions.get_extension_for_class(ExtendedKeyUsage).value
    except ExtensionNotFound:
        return False


def chain_problem(chain: Sequence[Certificate], trusted: Sequence[Certificate], now: datetime) -> str | None:
    """Why a signer's certificate does not lead to a trusted one, or None where it does.

    Args:
        chain: the signer's certificate and those between, as they came with the signature: not trusted.
        trusted: what the verifier trusts: usually a root. A signer's certificate given alone, or one that signed
            itself, is trusted as it is.
        now: the time at which all have to be valid.
    """
    from cryptography.x509 import verification

    leaf, between = chain[0], list(chain[1:])
    problem = leaf_problem(leaf, now)
    if problem is not None:
        return problem
    if leaf in trusted and (len(trusted) == 1 or leaf.issuer == leaf.subject):
        return None
    anchors = [certificate for certificate in trusted if certificate != leaf]
    if not anchors:
        return f"the certificate of {name_of(leaf)} is not among the trusted ones"
    builder = verification.PolicyBuilder().store(verification.Store(anchors)).time(now)
    builder = builder.extension_policies(ca_policy=_issuer_policy(), ee_policy=_any_extensions())
    try:
        builder.build_client_verifier().verify(leaf, between)
    except verification.VerificationError as error:
        reason = str(error).split(" (encountered processing")[0]
        return f"the certificate of {name_of(leaf)} does not lead to a trusted one: {reason}"
    except ValueError as error:
        return f"the chain of {name_of(leaf)} cannot be read: {error}"
    return None


def _any_extensions() -> Any:
    from cryptography.x509.verification import ExtensionPolicy

    return ExtensionPolicy.permit_all()


def _issuer_policy() -> Any:
    """An issuer has to be a certificate authority that may sign certificates; private ones often say no more."""
    from cryptography.x509 import BasicConstraints, KeyUsage
    from cryptography.x509.verification import Criticality

    def is_authority(policy: object, certificate: Certificate, extension: BasicConstraints) -> None:
        if not extension.ca:
            raise ValueError(f"{name_of(certificate)} is no certificate authority")

    def may_issue(policy: object, certificate: Certificate, extension: KeyUsage | None) -> None:
        if extension is not None and not extension.key_cert_sign:
            raise ValueError(f"{name_of(certificate)} may not issue certificates (key usage)")

    policy = _any_extensions().require_present(BasicConstraints, Criticality.AGNOSTIC, is_authority)
    return policy.may_be_present(KeyUsage, Criticality.AGNOSTIC, may_issue)

"""Keys on the curves P-256, P-384 and P-521: read from PEM files, used to sign and to verify (FIPS 186-5)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_core.errors import DataError, UsageError
from strata_core.manifest.regular_file import open_regular_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey

LARGEST_PEM_BYTES = 1 << 20
CURVES = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
"""Curves of the Open Model Signing specification by their names in SEC 2, with those that NIST gives them."""


def require_cryptography() -> None:
    """Refuses to go on where the optional package is missing.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise UsageError(
            "signatures need the package cryptography, which is not installed",
            hint="pip install 'strata[sign]' brings it",
        ) from None


def read_pem(path: Path) -> bytes:
    """A small file of keys or certificates; a link is followed, a special file is not opened.

    Raises:
        UsageError: no such file.
        DataError: unreadable, not a regular file, or larger than a MiB.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file", hint="give a file in PEM form")
    with open_regular_file(os.path.realpath(path)) as descriptor:
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > LARGEST_PEM_BYTES:
            raise DataError(f"{path}: not a PEM file: {size_bytes:,} bytes, where {LARGEST_PEM_BYTES:,} is the most")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_PEM_BYTES)


def load_private_key(path: Path) -> EllipticCurvePrivateKey:
    """The key to sign with.

    Raises:
        UsageError: no such file.
        DataError: not a private key, encrypted, or not on one of the three curves.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = read_pem(path)
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError:
        raise DataError(
            f"{path}: the key is encrypted", hint=f"openssl pkey -in {path} -out FILE writes it unencrypted"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise DataError(
            f"{path}: not a private key in PEM form",
            hint="openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out FILE makes one",
        ) from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise _not_on_a_curve(str(path), key)
    checked_key(key.public_key(), source=str(path))
    return key


def load_public_key(path: Path) -> EllipticCurvePublicKey:
    """The key to verify with.

    Raises:
        UsageError: no such file.
        DataError: not a public key, or not on one of the three curves.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = read_pem(path)
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        is_certificate = b"BEGIN CERTIFICATE" in data
        hint = "a certificate is given as --cert-chain" if is_certificate else "openssl pkey -in KEY -pubout writes one"
        raise DataError(f"{path}: not a public key in PEM form", hint=hint) from None
    return checked_key(key, source=str(path))


def checked_key(key: Any, *, source: str) -> EllipticCurvePublicKey:
    """The public key, if it is on one of the three curves.

    Raises:
        DataError: it is not; `source` says whose it is.
    """
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

    if not isinstance(key, EllipticCurvePublicKey) or key.curve.name not in CURVES:
        raise _not_on_a_curve(source, key)
    return key


def _not_on_a_curve(source: str, key: Any) -> DataError:
    curve = getattr(key, "curve", None)
    kind = f"a key on the curve {curve.name}" if curve is not None else f"a key of another kind ({type(key).__name__})"
    return DataError(
        f"{source}: {kind}, where model signing knows P-256, P-384 and P-521", hint="sign with a key on one of these"
    )


def signature_of(key: EllipticCurvePrivateKey, message: bytes) -> bytes:
    """An ECDSA signature in DER, the same each time where the installed OpenSSL can (RFC 6979)."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return key.sign(message, _algorithm(key.public_key(), deterministic=True))
    except UnsupportedAlgorithm:
        return key.sign(message, _algorithm(key.public_key()))


def is_signed_by(key: EllipticCurvePublicKey, signature: bytes, message: bytes) -> bool:
    """Whether a DER signature over a message was made with the private half of a key."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message, _algorithm(key))
    except InvalidSignature:
        return False
    return True


def _algorithm(key: EllipticCurvePublicKey, *, deterministic: bool = False) -> ECDSA:
    """ECDSA with the hash that goes with the curve."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

    by_bits: dict[int, Any] = {256: hashes.SHA256, 384: hashes.SHA384, 521: hashes.SHA512}
    return ECDSA(by_bits[key.curve.key_size](), deterministic_signing=deterministic)


def fingerprints(key: EllipticCurvePublicKey) -> tuple[str, str]:
    """SHA-256 in hexadecimal of the key's PEM text, by which bundles name it, and of its DER bytes."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    pem, der = (key.public_bytes(form, PublicFormat.SubjectPublicKeyInfo) for form in (Encoding.PEM, Encoding.DER))
    return hashlib.sha256(pem).hexdigest(), hashlib.sha256(der).hexdigest()

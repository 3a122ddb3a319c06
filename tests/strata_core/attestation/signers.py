"""Keys and certificates for the tests, made anew each time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

CURVES = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1}


@dataclass(frozen=True)
class Signer:
    """Files of one signer.

    Attributes:
        key, public: the pair.
        chain: the signer's certificate and the intermediate one.
        root: what a verifier trusts.
    """

    key: Path
    public: Path
    chain: Path
    root: Path


def write_key(path: Path, key: Any) -> Path:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def write_public(path: Path, key: Any) -> Path:
    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def write_certificates(path: Path, *certificates: x509.Certificate) -> Path:
    path.write_bytes(b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates))
    return path


def certificate(
    name: str,
    key: Any,
    issuer: tuple[str, Any] | None = None,
    *,
    authority: bool = False,
    days: tuple[int, int] = (-1, 365),
    signs: bool = True,
    path_length: int | None = None,
) -> x509.Certificate:
    """One certificate; `issuer` is the name and key of who signs it (None: itself), `days` the validity from today."""
    issuer_name, issuer_key = issuer or (name, key)
    today = datetime.now(UTC)
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer_name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today + timedelta(days=days[0]))
        .not_valid_after(today + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=path_length), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=signs and not authority,
                key_cert_sign=authority,
                crl_sign=authority,
                decipher_only=False,
                **usage,
            ),
            critical=True,
        )
    )
    return builder.sign(issuer_key, SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def make_signer(folder: Path, curve: str = "P-256", **leaf: Any) -> Signer:
    """A signer's files in a folder; `leaf` changes the signer's certificate, see `certificate`."""
    folder.mkdir(parents=True, exist_ok=True)
    root_key, between_key, key = (ec.generate_private_key(CURVES[curve]()) for _ in range(3))
    root = certificate("root", root_key, authority=True)
    between = certificate("between", between_key, ("root", root_key), authority=True)
    own = certificate("signer", key, ("between", between_key), **leaf)
    return Signer(
        write_key(folder / "key.pem", key),
        write_public(folder / "public.pem", key),
        write_certificates(folder / "chain.pem", own, between),
        write_certificates(folder / "root.pem", root),
    )

"""Sigstore bundles v0.3 as files: a DSSE envelope, its one signature, and by what the signer is known."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from strata_core.errors import DataError, UsageError
from strata_core.manifest.canonical import canonical_json, parse_json
from strata_core.manifest.regular_file import open_regular_file

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
LARGEST_BUNDLE_BYTES = 64 << 20

_MEDIA_TYPES = (MEDIA_TYPE, "application/vnd.dev.sigstore.bundle+json;version=0.3")
_METHODS: dict[str, Method] = {"publicKey": "key", "x509CertificateChain": "certificate", "certificate": "sigstore"}

Method = Literal["key", "certificate", "sigstore"]
"""How a signer is known: by a key, by a certificate of some authority, or by a keyless identity of Sigstore."""


@dataclass(frozen=True)
class Bundle:
    """What a bundle holds.

    Attributes:
        method: see `Method`.
        payload: the signed bytes of the envelope.
        signature: ECDSA in DER.
        hint: of method "key", the fingerprint by which the bundle names the key; empty where it gives none.
        certificates: in DER, the signer's first; empty of method "key".
    """

    method: Method
    payload: bytes
    signature: bytes
    hint: str = ""
    certificates: tuple[bytes, ...] = ()


def signed_bytes(payload: bytes) -> bytes:
    """What is signed of an envelope: its pre-authentication encoding (DSSE v1.0)."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def bundle_bytes(bundle: Bundle) -> bytes:
    """The file of a bundle that was signed by a key or a certificate: canonical JSON and a newline."""
    if bundle.method == "key":
        material: dict[str, Any] = {"publicKey": {"hint": bundle.hint}}
    else:
        material = {"x509CertificateChain": {"certificates": [{"rawBytes": _text(der)} for der in bundle.certificates]}}
    envelope = {
        "payload": _text(bundle.payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": "", "sig": _text(bundle.signature)}],
    }
    content = {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {**material, "tlogEntries": []},
        "dsseEnvelope": envelope,
    }
    return canonical_json(content) + b"\n"


def read_bundle(path: Path) -> Bundle:
    """Reads a bundle; whether its signature holds is not looked at.

    Raises:
        UsageError: no such file.
        DataError: unreadable, too large, not JSON that every reader takes alike, or not a bundle of version 0.3 with
            one signed in-toto statement.
    """
    source = str(path)
    content = parse_json(_read(path), source=source)
    if not isinstance(content, dict):
        raise DataError(f"{source}: not a Sigstore bundle: no JSON object")
    media_type = content.get("mediaType")
    if media_type not in _MEDIA_TYPES:
        raise DataError(f"{source}: not a Sigstore bundle of version 0.3: mediaType is {_shown(media_type)}")
    unknown = content.keys() - {"mediaType", "verificationMaterial", "dsseEnvelope"}
    if unknown:
        raise DataError(f"{source}: unknown key {min(unknown)!a}")
    envelope = _object(content, "dsseEnvelope", source)
    payload_type = envelope.get("payloadType")
    if payload_type != PAYLOAD_TYPE:
        raise DataError(f"{source}: payloadType is {_shown(payload_type)}, not {PAYLOAD_TYPE}")
    signatures = _list(envelope, "signatures", source)
    if len(signatures) != 1:
        raise DataError(f"{source}: {len(signatures)} signatures in the envelope, where a bundle has one")
    if not isinstance(signatures[0], dict):
        raise DataError(f"{source}: the signature is not an object")
    if not isinstance(signatures[0].get("keyid", ""), str | None):
        raise DataError(f"{source}: keyid is not text")
    method, hint, certificates = _signer(_object(content, "verificationMaterial", source), source)
    return Bundle(
        method, _bytes(envelope, "payload", source), _bytes(signatures[0], "sig", source), hint, tuple(certificates)
    )


def _signer(material: dict[str, Any], source: str) -> tuple[Method, str, list[bytes]]:
    unknown = material.keys() - _METHODS.keys() - {"tlogEntries", "timestampVerificationData"}
    if unknown:
        raise DataError(f"{source}: verificationMaterial has the unknown key {min(unknown)!a}")
    if material.get("tlogEntries") is not None:
        _list(material, "tlogEntries", source)
    given = [key for key in _METHODS if key in material]
    if len(given) != 1:
        named = " and ".join(given) or "nothing"
        raise DataError(f"{source}: verificationMaterial has {named}, where it has one of {', '.join(_METHODS)}")
    method = _METHODS[given[0]]
    content = _object(material, given[0], source)
    if method == "key":
        hint = content.get("hint")
        if not (hint is None or isinstance(hint, str)) or (hint is None and "rawBytes" not in content):
            raise DataError(f"{source}: publicKey has no hint")
        return method, hint or "", []
    if method == "certificate":
        items = _list(content, "certificates", source)
        if not items:
            raise DataError(f"{source}: there are no certificates in x509CertificateChain")
    else:
        if not _list(material, "tlogEntries", source):
            raise DataError(f"{source}: signed without a key, but there is no entry of a transparency log")
        items = [content]
    return method, "", _certificates(items, source)


def _certificates(items: Sequence[Any], source: str) -> list[bytes]:
    for item in items:
        if not isinstance(item, dict):
            raise DataError(f"{source}: a certificate is not an object")
    return [_bytes(item, "rawBytes", source) for item in items]


def _read(path: Path) -> bytes:
    if not path.exists():
        raise UsageError(f"{path}: no such file", hint="give the signature's file: a Sigstore bundle")
    with open_regular_file(os.path.realpath(path)) as descriptor:
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes == 0:
            raise DataError(f"{path}: not a Sigstore bundle: the file is empty")
        if size_bytes > LARGEST_BUNDLE_BYTES:
            most = f"{LARGEST_BUNDLE_BYTES:,}"
            raise DataError(f"{path}: not a Sigstore bundle: {size_bytes:,} bytes, where {most} is the most")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_BUNDLE_BYTES)


def _object(content: dict[str, Any], key: str, source: str) -> dict[str, Any]:
    value = content.get(key)
    if not isinstance(value, dict):
        raise DataError(f"{source}: {key} is {'missing' if value is None else 'not an object'}")
    return value


def _list(content: dict[str, Any], key: str, source: str) -> list[Any]:
    value = content.get(key)
    if not isinstance(value, list):
        raise DataError(f"{source}: {key} is {'missing' if value is None else 'not a list'}")
    return value


def _bytes(content: dict[str, Any], key: str, source: str) -> bytes:
    value = content.get(key)
    if not isinstance(value, str) or not value:
        raise DataError(f"{source}: {key} is {'not text' if value else 'missing or empty'}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise DataError(f"{source}: {key} is not Base64") from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{value!a}"[:100]

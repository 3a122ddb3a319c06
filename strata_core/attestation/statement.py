"""The in-toto statement that a model signature signs: files and their digests (Open Model Signing v1.0)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strata_core.errors import DataError
from strata_core.manifest.canonical import canonical_json, parse_json
from strata_core.manifest.document import parse_entries
from strata_core.manifest.faults import Fault
from strata_core.manifest.hashing import FileEntry
from strata_core.manifest.names import name_problem

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://model_signing/signature/v1.0"
ALWAYS_IGNORED = (".git", ".gitattributes", ".github", ".gitignore")
"""Names at the top of a folder that no signature covers."""

WHOLE_FILE = "."
"""The name that model-signing gives to the resource of a model that is one file; the specification: its name."""

_OLD_PREDICATE_TYPE = "https://model_signing/Digests/v0.1"


@dataclass(frozen=True)
class SignedContent:
    """What a statement says.

    Attributes:
        name: of the model; for people.
        digest: the subject's SHA-256, the model's identity for other documents.
        entries: each file by its path relative to the folder; the sizes are not known and 0.
        ignored: paths that are not covered, each with all below it.
        follows_links: whether the signer took a link for the file that it leads to.
    """

    name: str
    digest: str
    entries: tuple[FileEntry, ...]
    ignored: tuple[str, ...]
    follows_links: bool


def statement_bytes(name: str, entries: Sequence[FileEntry], ignored: Sequence[str]) -> bytes:
    """The payload to sign, in canonical JSON.

    Args:
        name: of the model: its folder's, or its file's.
        entries: its files.
        ignored: paths that are not covered.

    Raises:
        DataError: a name has no form in UTF-8.
    """
    ordered = sorted(entries, key=lambda entry: entry.path)
    resources = [{"name": entry.path, "algorithm": "sha256", "digest": entry.sha256} for entry in ordered]
    serialization = {
        "method": "files",
        "hash_type": "sha256",
        "allow_symlinks": False,
        "ignore_paths": sorted({*ALWAYS_IGNORED, *ignored}),
    }
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": subject_digest([entry.sha256 for entry in ordered])}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"resources": resources, "serialization": serialization},
    }
    return canonical_json(statement)


def subject_digest(digests: Sequence[str]) -> str:
    """SHA-256 over the digests' bytes, one after the other in the order of the resources (section 6.5.1)."""
    return hashlib.sha256(b"".join(bytes.fromhex(digest) for digest in digests)).hexdigest()


def parse_statement(payload: bytes, *, source: str) -> tuple[SignedContent, list[Fault]]:
    """Takes a payload apart, listing what is wrong with entries that cannot be used.

    Raises:
        DataError: not a model signature's statement, or one that needs what strata does not do.
    """
    content = parse_json(payload, source=f"{source}: its payload")
    if not isinstance(content, dict) or content.get("_type") != STATEMENT_TYPE:
        raise DataError(f"{source}: the payload is not an in-toto statement of version 1")
    _check_predicate_type(content.get("predicateType"), source)
    name, digest = _subject(content.get("subject"), source)
    predicate = content.get("predicate")
    if not isinstance(predicate, dict):
        raise DataError(f"{source}: the statement has no predicate")
    ignored, follows_links = _serialization(predicate.get("serialization"), source)
    entries, faults = _entries(predicate.get("resources"), source)
    if not faults and subject_digest([item["digest"] for item in predicate["resources"]]) != digest:
        raise DataError(f"{source}: it contradicts itself: the subject's digest is not that of the resources")
    return SignedContent(name, digest, entries, ignored, follows_links), faults


def _check_predicate_type(found: Any, source: str) -> None:
    if found == PREDICATE_TYPE:
        return
    old = found == _OLD_PREDICATE_TYPE
    raise DataError(
        f"{source}: predicateType is {found!a:.100}, not {PREDICATE_TYPE}",
        hint="that is the form of model-signing 0.2, given up since: have it signed again" if old else None,
    )


def _subject(subjects: Any, source: str) -> tuple[str, str]:
    subject = subjects[0] if isinstance(subjects, list) and len(subjects) == 1 else None
    digests = subject.get("digest") if isinstance(subject, dict) else None
    if subject is None or not isinstance(digests, dict) or not isinstance(digests.get("sha256"), str):
        raise DataError(f"{source}: the statement has no single subject with a sha256")
    name = subject.get("name")
    if not isinstance(name, str) or not name:
        raise DataError(f"{source}: the subject has no name")
    return name, digests["sha256"]


def _serialization(found: Any, source: str) -> tuple[tuple[str, ...], bool]:
    if not isinstance(found, dict):
        raise DataError(f"{source}: the predicate has no serialization")
    for key, wanted in (("method", "files"), ("hash_type", "sha256")):
        if found.get(key) != wanted:
            raise DataError(
                f"{source}: {key} is {found.get(key)!a:.100}; strata verifies {wanted!r} only",
                hint="have it signed by file, with sha256",
            )
    follows_links, ignored = found.get("allow_symlinks"), found.get("ignore_paths", [])
    if not isinstance(follows_links, bool):
        raise DataError(f"{source}: allow_symlinks is not true or false")
    if not isinstance(ignored, list):
        raise DataError(f"{source}: ignore_paths is not a list")
    for item in ignored:
        problem = name_problem(item) if isinstance(item, str) else "not text"
        if problem is not None:
            raise DataError(f"{source}: ignore_paths has {item!a:.100}: {problem}")
    return tuple(sorted({*ALWAYS_IGNORED, *ignored})), follows_links


def _entries(found: Any, source: str) -> tuple[tuple[FileEntry, ...], list[Fault]]:
    if not isinstance(found, list) or not found:
        raise DataError(f"{source}: the statement lists no resources")
    items = []
    for index, item in enumerate(found):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise DataError(f"{source}: resource {index} is not an object with a name")
        if item.get("algorithm") != "sha256":
            raise DataError(f"{source}: resource {index} has the algorithm {item.get('algorithm')!a:.100}, not sha256")
        items.append({"path": item["name"], "size": 0, "sha256": item.get("digest")})
    if len(items) == 1 and items[0]["path"] == WHOLE_FILE:
        entries, faults = parse_entries([{**items[0], "path": "file"}], source=source)
        return tuple(FileEntry(WHOLE_FILE, 0, entry.sha256) for entry in entries), faults
    entries, faults = parse_entries(items, source=source)
    return tuple(entries), faults

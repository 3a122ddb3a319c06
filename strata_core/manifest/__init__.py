"""Manifests: what a folder holds and what it was made from, written so that anyone can check it."""

from strata_core.manifest.canonical import canonical_json
from strata_core.manifest.document import MANIFEST_NAME, Manifest, Parent
from strata_core.manifest.faults import Fault, ParentReport, Report
from strata_core.manifest.hashing import FileEntry, hash_file, hash_files
from strata_core.manifest.verification import verify

__all__ = [
    "MANIFEST_NAME",
    "Fault",
    "FileEntry",
    "Manifest",
    "Parent",
    "ParentReport",
    "Report",
    "canonical_json",
    "hash_file",
    "hash_files",
    "verify",
]

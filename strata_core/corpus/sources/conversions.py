"""Formats that are not read, and how a file in one of them becomes one that is."""

from __future__ import annotations

import os
import shlex

_TABLES = {".parquet": "parquet", ".feather": "feather", ".xlsx": "excel", ".xls": "excel", ".ods": "excel"}
"""By suffix what pandas calls it."""

_RDF = (".ttl", ".turtle", ".n3", ".owl", ".rdf", ".jsonld", ".trig", ".nq", ".nquads")
_ARCHIVES = {
    ".zip": "unzip {given}",
    ".tar": "tar -xf {given}",
    ".tgz": "tar -xf {given}",
    ".bz2": "bunzip2 --keep {given}",
    ".xz": "unxz --keep {given}",
}


def conversion_of(name: str) -> str | None:
    """What to do with a file that is not read, by its name; None where the name is none of a known format.

    Args:
        name: the file's path, as it is to be typed.
    """
    stem, suffix = os.path.splitext(name)
    suffix = suffix.lower()
    given, csv, nt, lines = (shlex.quote(path) for path in (name, stem + ".csv", stem + ".nt", stem + ".jsonl"))
    if suffix in _TABLES:
        code = f"import pandas, sys; pandas.read_{_TABLES[suffix]}(sys.argv[1]).to_csv(sys.argv[2], index=False)"
        return f"make it a .csv of triples: python -c {shlex.quote(code)} {given} {csv}"
    if suffix in _RDF:
        code = (
            "import rdflib, sys; "
            "rdflib.Dataset(default_union=True).parse(sys.argv[1]).serialize(sys.argv[2], 'nt', encoding='utf-8')"
        )
        return f"make it N-Triples: python -c {shlex.quote(code)} {given} {nt}"
    if suffix == ".json":
        return (
            f"make it JSON Lines, one record a line: jq -c '.[]' {given} > {lines} (for an array of records); "
            "--format jsonl reads it as it is, where each line is a record"
        )
    if suffix in _ARCHIVES:
        return f"unpack it first: {_ARCHIVES[suffix].format(given=given)}"
    return None

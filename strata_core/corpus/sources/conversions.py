"""Formats that are not read, and how a file in one of them becomes one that is."""

from __future__ import annotations

import os
import shlex

_PARQUET, _FEATHER = "read_parquet(sys.argv[1])", "read_feather(sys.argv[1])"
_SHEET = "read_excel(sys.argv[1], dtype=str, keep_default_na=False)"
_TABLES = {".parquet": _PARQUET, ".feather": _FEATHER, ".xlsx": _SHEET, ".xls": _SHEET, ".ods": _SHEET}
"""By suffix how pandas reads it, a cell of `None` or `nan` as that word."""

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
        code = f"import pandas, sys; pandas.{_TABLES[suffix]}.to_csv(sys.argv[2], index=False)"
        text = '.to_json(sys.argv[2], orient="records", lines=True)'
        return f"make a .csv of triples: python -c {shlex.quote(code)} {given} {csv}; for text, {text} makes a .jsonl"
    if suffix in _RDF:
        code = (
            "import rdflib, sys; "
            'rdflib.Dataset(default_union=True).parse(sys.argv[1]).serialize(sys.argv[2], "nt", encoding="utf-8")'
        )
        return f"make N-Triples: python -c {shlex.quote(code)} {given} {nt}"
    if suffix == ".json":
        return (
            f"make JSON Lines, one record a line: jq -c '.[]' {given} > {lines} (for an array of records); "
            "--format jsonl reads it as it is, where each line is a record"
        )
    if suffix in _ARCHIVES:
        return f"unpack it first: {_ARCHIVES[suffix].format(given=given)}"
    return None

"""Chat templates: Jinja text inside a model file that its users render, and which code can hide in."""

from __future__ import annotations

import re

from strata_core.audit.reading import Contents

_REACHES_OUT = re.compile(
    r"__\w+__|\|\s*attr\b|\\x5f|\\u005f|\\137|\b(?:import|include|extends)\s+['\"]|\b(?:popen|subprocess|getattr|eval|exec)\b"
    r"|\b(?:self|cycler|joiner|lipsum|namespace|request|config)\s*\.\s*_"
)


def judge_template(where: str, text: str, contents: Contents) -> None:
    """A template that asks for what only an escape from the sandbox needs is unsafe; any other is named."""
    found = _REACHES_OUT.search(text)
    if found:
        contents.unsafe(
            f"{where}: a template that reaches out of its sandbox ({found[0].strip()!r}); rendering runs it"
        )
    else:
        contents.notes.append(f"{where}: a template of {len(text):,} characters, which programs render")

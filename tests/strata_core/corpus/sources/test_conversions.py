"""What to do with files in formats that are not read."""

import shlex

import pytest

from strata_core.corpus.sources.conversions import conversion_of
from strata_core.corpus.sources.files import FORMATS, find_files
from strata_core.errors import DataError, UsageError


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kg.parquet", "read_parquet"),
        ("kg.XLSX", "keep_default_na=False"),
        ("kg.ttl", '"nt"'),
        ("kg.owl", '"nt"'),
        ("kg.jsonld", '"nt"'),
        ("docs.json", "jq -c '.[]' docs.json > docs.jsonl"),
        ("docs.zip", "unzip docs.zip"),
    ],
)
def test_a_format_that_is_not_read_is_refused_with_the_command_that_converts_it(tmp_path, name, said) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert said in (conversion_of(name) or "")
    with pytest.raises(UsageError, match="its format is not read") as refused:
        find_files([tmp_path / name])
    assert refused.value.hint == conversion_of(str(tmp_path / name))
    with pytest.raises(DataError) as nothing:
        find_files([tmp_path])
    assert nothing.value.hint == conversion_of(name)


def test_names_are_quoted_for_the_shell_and_the_code_compiles() -> None:
    command = (conversion_of("my kg's.ttl") or "").partition(": ")[2]
    words = shlex.split(command)
    assert words[:2] == ["python", "-c"] and words[3:] == ["my kg's.ttl", "my kg's.nt"]
    compile(words[2], "-c", "exec")


def test_formats_that_are_read_need_no_conversion() -> None:
    for suffix in (*FORMATS, ".tsv", ".csv", ".nt", ".md", ""):
        assert conversion_of("a" + suffix) is None and conversion_of(f"a{suffix}.gz") is None

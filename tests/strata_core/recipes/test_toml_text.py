from pathlib import Path

import pytest

from strata_core.errors import RecipeError, UsageError
from strata_core.recipes.toml_text import read_toml

SHARED_CASES = Path(__file__).resolve().parents[3].parent / "shared" / "cases" / "X09"


def refusal(path: Path) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        read_toml(path, "r.toml")
    return caught.value


def test_a_byte_order_mark_is_dropped(write):
    assert read_toml(write(b"\xef\xbb\xbfseed = 7\n"), "r.toml") == ({"seed": 7}, {("seed",): 1})


def test_crlf_reads_as_lf_also_inside_a_multi_line_string(write):
    text = 'a = 1\r\nnote = """a\r\nb"""\r\nz = 2\r\n'
    windows = read_toml(write(text, "crlf.toml"), "r.toml")
    assert windows == read_toml(write(text.replace("\r\n", "\n"), "lf.toml"), "r.toml")
    assert windows[0]["note"] == "a\nb"
    assert windows[1][("z",)] == 4


def test_a_lone_carriage_return_is_refused_with_its_line(write):
    assert refusal(write(b"a = 1\nb = 2\rc = 3\r")).message.startswith("r.toml:2: a carriage return")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_refused_by_name_or_as_no_toml(write, encoding):
    data = "seed = 7\n".encode(encoding)
    error = refusal(write(data))
    assert error.exit_code == 2
    if encoding in ("utf-16", "utf-32"):
        assert f"the file is {encoding.upper()}" in error.message


def test_bytes_that_are_not_utf8_are_named_with_line_and_offset(write):
    error = refusal(write("# é\nnote = ".encode() + b'"caf\xe9"\n'))
    assert error.message == "r.toml:2: byte 0xe9 at offset 16 is not UTF-8"


def test_the_offset_counts_a_byte_order_mark(write):
    assert "offset 6 " in refusal(write(b'\xef\xbb\xbfa="\xff"')).message


def test_yaml_is_answered_with_how_toml_is_written(write):
    error = refusal(write("[run]\nseed: 7\n"))
    assert error.message.startswith("r.toml:2:5: not TOML")
    assert "recipes are TOML" in (error.hint or "")


@pytest.mark.parametrize(
    "text",
    ["a = 1\na = 2\n", "a = ", "[a", 'a = "open\n', "a = " + "[" * 5000 + "]" * 5000, "a = " + "1" * 5000, "a = \x00"],
)
def test_what_is_not_toml_is_refused_without_a_traceback(write, text):
    assert refusal(write(text)).message.startswith("r.toml")


def test_a_file_larger_than_any_recipe_is_refused(write):
    assert "larger than" in refusal(write(b"# " + b"x" * (1 << 20))).message


def test_a_folder_and_a_missing_file_are_usage_errors(tmp_path):
    for path in (tmp_path, tmp_path / "none.toml", tmp_path / "none" / "x.toml"):
        with pytest.raises(UsageError):
            read_toml(path, "r.toml")


@pytest.mark.parametrize("name", ["cr_only", "utf16", "latin1", "yaml_like"])
def test_case_x09_is_refused_with_the_file_named(name):
    if not SHARED_CASES.is_dir():
        pytest.skip(f"{SHARED_CASES} is not there")
    with pytest.raises(RecipeError) as caught:
        read_toml(SHARED_CASES / f"{name}.toml", f"{name}.toml")
    assert caught.value.message.startswith(f"{name}.toml")


def test_case_x09_bom_and_crlf_read_as_if_plain():
    if not SHARED_CASES.is_dir():
        pytest.skip(f"{SHARED_CASES} is not there")
    assert read_toml(SHARED_CASES / "bom.toml", "bom")[0] == {"seed": 7, "train": {"max_steps": 20}}
    assert read_toml(SHARED_CASES / "crlf.toml", "crlf")[0]["train"]["note"] == "a\nb"
    assert read_toml(SHARED_CASES / "empty.toml", "empty")[0] == {}

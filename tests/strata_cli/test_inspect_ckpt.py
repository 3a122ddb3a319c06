import json
from pathlib import Path

import pytest

from strata_cli.commands.inspect_ckpt import inspect_ckpt
from strata_core.errors import UsageError
from tests.strata_core.audit.building import archive, call, floats, name, program, table, tensor, text

SOUND = archive(program(table(w=tensor("0", (2, 2), (2, 1), elements=4), step=b"K\x07")), {"0": floats(1, 2, 3, 4)})


@pytest.fixture
def inspect(tmp_path, capsys):
    """Inspects a file of these bytes and gives the exit code with what was printed."""

    def run(data: bytes, *, stats=False, diff=None, tensors=None, strict=False, json_output=False, output="text"):
        path = tmp_path / "model.pt"
        path.write_bytes(data)
        code = inspect_ckpt(
            str(path), stats=stats, diff=diff, tensors=tensors, strict=strict, output="json" if json_output else output
        )
        captured = capsys.readouterr()
        return code, captured.out

    return run


def test_a_sound_checkpoint_is_listed_line_by_line(inspect):
    code, out = inspect(SOUND)
    assert code == 0
    assert "w  float32  [2, 2]  16 B" in out.splitlines()
    assert "step        7" in out
    assert out.splitlines()[-1] == "verdict: ok"


def test_json_has_the_keys_that_others_rely_on(inspect):
    code, out = inspect(SOUND, json_output=True, stats=True)
    shown = json.loads(out)
    assert code == 0
    assert {"path", "format", "verdict", "reasons", "globals", "tensors", "totals", "step"} <= set(shown)
    assert {"name", "dtype", "shape", "bytes"} <= set(shown["tensors"][0])
    assert shown["totals"] == {"tensors": 1, "parameters": 4, "elements": 4, "bytes": 16}
    assert shown["tensors"][0]["stats"]["max"] == 4.0
    assert shown["step"] == 7


@pytest.mark.parametrize(
    ("data", "strict", "code"),
    [
        (archive(program(call(name("posix", "system"), text("touch CANARY")))), False, 4),
        (archive(program(call(name("mine", "Config")))), False, 0),
        (archive(program(call(name("mine", "Config")))), True, 4),
        (SOUND[:-20], False, 5),
        (b"", False, 5),
    ],
)
def test_exit_codes_follow_the_verdict(inspect, data, strict, code):
    found, out = inspect(data, strict=strict)
    assert found == code
    assert any(line.startswith("reason: ") for line in out.splitlines())


def test_numbers_that_cannot_be_fail_with_stats(inspect):
    bad = archive(program(table(w=tensor("0", (1,), (1,), elements=1))), {"0": floats(float("nan"))})
    assert inspect(bad)[0] == 0
    assert inspect(bad, stats=True)[0] == 4
    code, out = inspect(bad, stats=True, json_output=True)
    assert code == 4
    assert json.loads(out)["verdict"] == "numeric"


def test_differences_are_told(inspect, tmp_path):
    other = tmp_path / "other.pt"
    other.write_bytes(SOUND.replace(floats(3), floats(5)))
    code, out = inspect(SOUND, diff=str(other))
    assert code == 0
    assert "changed: w: 1 elements, first at [1, 0], largest difference 2" in out
    shown = json.loads(inspect(SOUND, diff=str(other), json_output=True)[1])
    assert shown["diff"]["changed"][0]["first_index"] == [1, 0]


def test_a_pattern_limits_the_list_and_not_the_totals(inspect):
    two = archive(
        program(table(a=tensor("0", (1,), (1,), elements=1), b=tensor("1", (1,), (1,), elements=1))),
        {"0": floats(1), "1": floats(2)},
    )
    shown = json.loads(inspect(two, tensors="a*", json_output=True)[1])
    assert [entry["name"] for entry in shown["tensors"]] == ["a"]
    assert shown["totals"]["tensors"] == 2


def test_names_are_escaped_on_a_terminal_and_verbatim_in_json(inspect):
    odd = "a\x1b[31m[red]\n\u202e"
    data = archive(program(b"}" + text(odd) + tensor("0", (1,), (1,), elements=1) + b"s"), {"0": floats(1)})
    plain = inspect(data)[1]
    assert "\x1b" not in plain
    assert "a\\x1b[31m[red]\\n\\u202e" in plain
    assert json.loads(inspect(data, json_output=True)[1])["tensors"][0]["name"] == odd


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError, match="no such file"):
        inspect_ckpt(str(tmp_path / "nothing"), stats=False, diff=None, tensors=None, strict=False)


@pytest.mark.parametrize("width", [80, 200])
def test_a_table_fits_the_terminal(inspect, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("strata_cli.commands.inspect_ckpt.is_live", lambda stream: True)
    monkeypatch.setattr("strata_cli.display.table.is_live", lambda stream: True)
    out = inspect(SOUND, json_output=False)[1]
    assert "float32" in out
    assert max(len(line) for line in out.splitlines()) <= width


def test_sarif_is_one_log_with_the_same_exit_code(inspect):
    code, out = inspect(archive(program(call(name("posix", "system"), text("touch CANARY")))), output="sarif")
    shown = json.loads(out)
    assert code == 4
    assert shown["version"] == "2.1.0"
    assert shown["runs"][0]["results"][0]["ruleId"] == "unsafe"


def test_sarif_has_no_place_for_a_comparison(inspect):
    with pytest.raises(UsageError):
        inspect(SOUND, diff="other", output="sarif")

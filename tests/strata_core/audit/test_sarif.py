from __future__ import annotations

import json
from pathlib import Path

from strata_core.audit.sarif import to_sarif
from tests.strata_core.audit.building import archive, call, inspected, name, program, table, text

HOSTILE = program(call(name("posix", "system"), text("touch CANARY")))


def test_every_finding_is_a_result_of_a_rule(tmp_path: Path) -> None:
    shown = to_sarif(inspected(tmp_path, archive(HOSTILE + b"x")))
    (run,) = shown["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert shown["version"] == "2.1.0"
    assert {result["ruleId"] for result in run["results"]} == {"unsafe", "corrupt"}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] == "error"
    assert run["properties"] == {"format": "torch zip", "verdict": "unsafe"}
    json.dumps(shown)


def test_a_place_in_the_file_itself_has_its_offset(tmp_path: Path) -> None:
    raw, packed = (to_sarif(inspected(tmp_path, data))["runs"][0] for data in (HOSTILE, archive(HOSTILE)))
    place = raw["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"] == {"byteOffset": 2}
    assert place["artifactLocation"]["uri"] == f"file://{tmp_path}/checkpoint"
    assert "region" not in packed["results"][0]["locations"][0]["physicalLocation"]


def test_a_sound_file_has_no_results_and_odd_paths_are_quoted(tmp_path: Path) -> None:
    report = inspected(tmp_path, archive(program(table(step=b"K\x01"))))
    report.path = "a b/ü%.pt"
    shown = to_sarif(report)["runs"][0]
    assert shown["results"] == []
    assert shown["artifacts"][0]["location"]["uri"] == "a%20b/%C3%BC%25.pt"

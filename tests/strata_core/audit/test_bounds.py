"""Hostile files against the budget: each within 2 s of CPU time and 300 MB, in a process without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.strata_core.audit.building import archive, program, safetensors, text, zipped

MEASURE = """
import json, sys, time
from strata_core.audit import inspect_checkpoint
report = inspect_checkpoint(sys.argv[1])
size = len(json.dumps(report.to_json()))
status = open("/proc/self/status").read()
peak = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024
loaded = sorted({"torch", "numpy", "typer", "rich"} & set(sys.modules))
print(json.dumps([report.verdict, size, time.process_time(), peak, loaded]))
"""

LAUGHS = b"\x80\x02]q\x00" + b"".join(
    b"(h" + bytes([level]) + b"h" + bytes([level]) + b"lq" + bytes([level + 1]) for level in range(100)
)
DEEP = b"(" * 500_000 + b"t" * 500_000
BOMBS = {
    "shared lists": (archive(LAUGHS + b"."), "ok"),
    "deep tuples": (archive(program(DEEP)), "ok"),
    "deep lists": (archive(program(b"]" * 300_000 + b"a" * 299_999)), "ok"),
    "many opcodes": (archive(program(b"N0" * 5_000_000 + b"N")), "corrupt"),
    "many calls": (archive(program(b"ccollections\nOrderedDict\nq\x00" + b"h\x00)R0" * 1_000_000 + b"N")), "corrupt"),
    "many names": (archive(program(b"".join(b"cm\nA%d\n0" % at for at in range(300_000)) + b"N")), "corrupt"),
    "long text": (archive(program(text("x" * (40 << 20)))), "ok"),
    "many texts": (archive(program(b"]" + (text("y" * 60_000) + b"a") * 1000)), "ok"),
    "a long integer": (archive(b"\x80\x02\x8b" + (8 << 20).to_bytes(4, "little") + b"\x7f" * (8 << 20) + b"."), "ok"),
    "digits": (archive(program(b"L" + b"9" * 900_000 + b"L\n")), "corrupt"),
    "an endless line": (archive(b"c" + b"a" * (4 << 20)), "corrupt"),
    "long names of deep dicts": (
        archive(program(b"".join(text("k" * 1000) for _ in range(2000)) + b"N" + b"0" * 2000)),
        "ok",
    ),
    "many records": (
        zipped(
            {"archive/data.pkl": program(b"}"), "archive/version": b"3"}
            | {f"archive/{at}": b"" for at in range(20_000)}
        ),
        "ok",
    ),
    "a wide header": (safetensors(b'{"a":[' + b"[]," * 3_000_000 + b"[]]}"), "corrupt"),
    "many tensors": (
        safetensors({f"t{at}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for at in range(50_000)}),
        "ok",
    ),
}


@pytest.mark.parametrize("what", BOMBS)
def test_a_bomb_is_inspected_within_the_budget(what: str, tmp_path: Path) -> None:
    data, verdict = BOMBS[what]
    path = tmp_path / "bomb"
    path.write_bytes(data)
    printed = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    found, _, seconds, peak_bytes, loaded = json.loads(printed.stdout)
    assert found == verdict
    assert peak_bytes < 300 << 20
    # The budget is 2 s; the margin is for machines that do other work at the same time.
    assert seconds < 6
    assert loaded == []

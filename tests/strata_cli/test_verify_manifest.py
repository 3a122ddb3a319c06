"""`strata verify-manifest` as people and programs meet it: exit codes, JSON, lines, names that are hard to print."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from strata_cli import main
from strata_cli.commands import verify_manifest as command
from strata_core.manifest import Manifest, Parent, hash_files

ODD_NAMES = [
    "with space",
    "donn\u00e9es \u65e5\u672c \U0001f40e",
    "[v1] run [bold] [red]x",
    "-dash",
    "quote'\"$(touch X)",
    "%s {0} \\n",
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("corpus.json", "train-00000.bin", "val-00000.bin"):
        (folder / name).write_bytes(name.encode() * 100)
    files = tuple(hash_files(folder, [path.name for path in folder.iterdir()]))
    Manifest("corpus", files=files, parents=(Parent("corpus", "0" * 64, None),)).write(folder)
    return folder


def damage(corpus: Path) -> None:
    (corpus / "train-00000.bin").write_bytes(b"x" * 1500)
    (corpus / "val-00000.bin").unlink()
    (corpus / "[red]new").write_bytes(b"x")
    os.symlink("elsewhere", corpus / "link")


def test_a_sound_folder_exits_0_with_a_summary_and_the_next_command(corpus, capsys):
    assert main.run(["verify-manifest", str(corpus)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "parent: corpus 000000000000: not found here"
    assert lines[1].startswith("ok: corpus ") and "3 files checked" in lines[1]
    assert lines[2] == f"next: strata train-lm --recipe lm/small --set corpus.path={corpus}"


def test_every_fault_is_a_line_and_the_exit_code_is_4(corpus, capsys):
    damage(corpus)
    assert main.run(["verify-manifest", str(corpus)]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "extra: [red]new: not listed (found 1 bytes)"
    assert lines[1] == "extra: link: not listed (found a link to elsewhere)"
    assert lines[2].startswith("changed: train-00000.bin: another content (expected ")
    assert lines[3] == "missing: val-00000.bin: not there"
    assert lines[5].startswith("failed: 1 changed, 1 missing, 2 extra; corpus ")


def test_json_has_the_keys_that_programs_rely_on_and_is_all_of_the_output(corpus, capsys):
    damage(corpus)
    assert main.run(["verify-manifest", str(corpus), "--json"]) == 4
    output = capsys.readouterr()
    result = json.loads(output.out)
    assert result["verdict"] == "failed" and result["checked"] == 3
    assert result["changed"] == ["train-00000.bin"]
    assert result["missing"] == ["val-00000.bin"]
    assert result["extra"] == ["[red]new", "link"]
    assert result["other"] == []
    assert result["parents"] == [
        {"describes": "corpus", "digest": "0" * 64, "path": None, "status": "not found here"}
    ]
    assert {fault["path"] for fault in result["faults"]} == {*result["changed"], *result["missing"], *result["extra"]}
    assert output.err == ""


def test_json_of_a_sound_folder_says_ok(corpus, capsys):
    assert main.run(["verify-manifest", "--json", str(corpus)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "ok" and result["changed"] == result["missing"] == result["extra"] == []


def test_quick_finds_sizes_and_says_that_contents_were_not_read(corpus, capsys):
    (corpus / "corpus.json").write_bytes(b"X" + (corpus / "corpus.json").read_bytes()[1:])
    assert main.run(["verify-manifest", str(corpus), "--quick"]) == 0
    assert f"next: strata verify-manifest {corpus} reads the contents too" in capsys.readouterr().out
    (corpus / "corpus.json").write_bytes(b"X")
    assert main.run(["verify-manifest", str(corpus), "--quick"]) == 4


def test_a_path_that_is_absent_exits_2_and_one_without_a_manifest_5(tmp_path, capsys):
    assert main.run(["verify-manifest", str(tmp_path / "absent")]) == 2
    assert main.run(["verify-manifest", str(tmp_path)]) == 5
    (tmp_path / "manifest.json").write_bytes(b"{")
    assert main.run(["verify-manifest", str(tmp_path), "--json"]) == 5
    assert capsys.readouterr().out == ""


def test_a_home_folder_is_expanded(corpus, monkeypatch):
    monkeypatch.setenv("HOME", str(corpus.parent))
    assert main.run(["verify-manifest", "~/corpus"]) == 0


def test_the_table_on_a_terminal_shows_names_whole_and_takes_no_markup(corpus, capsys, monkeypatch):
    damage(corpus)
    (corpus / "bad\udcff\nname").write_bytes(b"x")
    monkeypatch.setattr(command, "is_live", lambda stream: True)
    monkeypatch.setattr(command, "columns", lambda: 80)
    command._write_faults(command.verify(corpus).faults)
    shown = capsys.readouterr().out
    for text in ("[red]new", "bad\\xff\\nname", "a link to elsewhere", "train-00000.bin"):
        assert text in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", [*ODD_NAMES, "new\nline", "bad\udcff"])
def test_folders_with_odd_names_are_verified_under_any_locale(corpus, strata, name):
    shutil.copytree(corpus, corpus.parent / name)
    done = strata("verify-manifest", "--", name, environment={"LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (corpus.parent / "X").exists()


def test_verifying_imports_neither_torch_nor_numpy_nor_pydantic(corpus, strata):
    import subprocess
    import sys

    script = (
        "import sys; from strata_cli import main; code = main.run(['verify-manifest', sys.argv[1]]);"
        "print(code, sorted({'torch', 'numpy', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(corpus)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"

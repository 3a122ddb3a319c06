"""`strata verify-manifest` as people and programs meet it: exit codes, JSON, lines, names that are hard to print."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from strata_cli import main
from strata_cli.commands import verify_manifest as command
from strata_cli.replay_option import with_replay_value
from strata_core.manifest import Manifest, Parent, hash_files
from strata_core.recipes import load_recipe
from tests.strata_core.conftest import TINY

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
    assert result["parents"] == [{"describes": "corpus", "digest": "0" * 64, "path": None, "status": "not found here"}]
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


@pytest.mark.parametrize(
    ("given", "completed"),
    [
        (["run", "--replay"], ["run", "--replay=last"]),
        (["--replay", "run"], ["--replay=last", "run"]),
        (["run", "--replay", "200", "--json"], ["run", "--replay", "200", "--json"]),
        (["--replay", "--json", "run"], ["--replay=last", "--json", "run"]),
        (["--replay=8", "run"], ["--replay=8", "run"]),
        (["--replay", "--", "200"], ["--replay=last", "--", "200"]),
        (["--", "--replay"], ["--", "--replay"]),
    ],
)
def test_the_step_of_a_replay_may_be_left_out(given, completed):
    assert with_replay_value(given) == completed


@pytest.fixture(scope="module")
def trained(tmp_path_factory, byte_corpus) -> Path:
    """A run of 4 steps with checkpoints at 2 and 4, beside a corpus of its own."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(byte_corpus, folder / "corpus")
    (folder / "tiny.toml").write_text("[corpus]\npath = 'corpus'\n")
    settings = [*TINY, "run.max_steps=4", "checkpoint.every=2", "checkpoint.keep_last=9"]
    recipe = load_recipe(folder / "tiny.toml", "lm", settings)

    from strata_core.launch.starting import train

    train(recipe, folder / "run", device="cpu")
    return folder


def forge(trained: Path, folder: Path) -> Path:
    """A copy of the run whose last weights and all manifests were replaced; ordinary verification finds nothing."""
    from safetensors.torch import load_file, save_file

    run = folder / "forged"
    shutil.copytree(trained / "run", run, symlinks=True)
    shutil.copytree(trained / "corpus", folder / "corpus")
    checkpoint = run / "checkpoints/step-00000004"
    weights = load_file(checkpoint / "model.safetensors")
    weights["transformer.norm.weight"][0] += 1.0
    save_file(weights, checkpoint / "model.safetensors")
    manifest = Manifest.read(checkpoint)
    names = [entry.path for entry in manifest.files]
    manifest = replace(manifest, files=tuple(hash_files(checkpoint, names)))
    manifest.write(checkpoint)
    of_run = Manifest.read(run)
    first, _ = of_run.state["checkpoints"]
    listed = [first, {"path": f"checkpoints/{checkpoint.name}", "digest": manifest.digest}]
    replace(of_run, state={**of_run.state, "checkpoints": listed}).write(run)
    return run


def test_an_honest_run_is_replayed_with_or_without_a_step(trained, capsys):
    run = str(trained / "run")
    assert main.run(["verify-manifest", run, "--replay"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("replay ok: trained from step 2 to step 4 again on cpu, ")
    assert lines[-2].endswith("80 tensors and the trainer's state equal bit for bit")
    assert lines[-1] == f"next: strata verify-manifest {run} --replay 2, for the steps before"
    assert main.run(["verify-manifest", "--replay", "2", run, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "ok"
    replay = answer["replay"]
    assert (replay["from_step"], replay["to_step"], replay["equal"], replay["first_difference"]) == (0, 2, True, None)


def test_a_replay_is_attested_to_and_a_bill_of_the_run_written(trained, tmp_path, capsys):
    run, statement, bill = str(trained / "run"), tmp_path / "replay.json", tmp_path / "bill.json"
    assert main.run(["verify-manifest", run, "--attest", str(statement), "--statement", "replay"]) == 0
    replay = json.loads(statement.read_bytes())["predicate"]["replay"]
    assert (replay["from_step"], replay["to_step"], replay["comparison"]) == (2, 4, "bit for bit") and replay["equal"]
    assert main.run(["inspect-ckpt", run, "--bom", str(bill)]) == 0
    model = json.loads(bill.read_bytes())["metadata"]["component"]
    assert model["name"] == "run/step-00000004" and model["modelCard"]["modelParameters"]["datasets"]


def test_a_forgery_that_ordinary_verification_passes_is_found_by_replay(trained, tmp_path, capsys):
    run = str(forge(trained, tmp_path))
    assert main.run(["verify-manifest", run]) == 0
    capsys.readouterr()
    assert main.run(["verify-manifest", run, "--replay"]) == 4
    shown = capsys.readouterr().out
    row = "step 4 model.safetensors  transformer.norm.weight: 1 of 16 elements differ, by up to 1, "
    assert row in shown
    assert main.run(["verify-manifest", run, "--replay", "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["changed"], answer["replay"]["equal"]) == ("failed", [], False)
    first = answer["replay"]["first_difference"]
    assert (first["step"], first["tensor"]) == (4, "transformer.norm.weight")
    assert first["largest_difference"] == pytest.approx(1.0, rel=1e-5)


def test_a_run_that_is_not_whole_is_not_replayed(trained, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(trained / "run", run, symlinks=True)
    (run / "metrics.jsonl").unlink()
    assert main.run(["verify-manifest", str(run), "--replay", "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["missing"]) == ("failed", ["metrics.jsonl"])
    assert answer["replay"]["equal"] is None


def test_a_replay_without_the_corpus_exits_5_and_names_it(trained, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(trained / "run", run, symlinks=True)
    (trained / "corpus").rename(trained / "away")
    try:
        assert main.run(["verify-manifest", str(run), "--replay"]) == 5
    finally:
        (trained / "away").rename(trained / "corpus")
    output = capsys.readouterr()
    assert output.out.splitlines()[-1].startswith("ok: run ")
    assert f"cannot be replayed here: {trained / 'corpus'}: there is no such corpus" in output.err


def test_a_replay_of_what_is_no_run_or_to_no_step_exits_2(trained, corpus, capsys):
    assert main.run(["verify-manifest", str(corpus), "--replay"]) == 2
    assert main.run(["verify-manifest", str(trained / "run/checkpoints/latest"), "--replay"]) == 2
    assert main.run(["verify-manifest", str(trained / "run"), "--replay", "3"]) == 2
    assert "it has steps 2, 4" in capsys.readouterr().err
    assert main.run(["verify-manifest", str(trained / "run"), "--replay=best"]) == 2


@pytest.mark.slow
def test_a_run_on_two_ranks_with_exact_sums_is_replayed_bit_for_bit_on_one_process(trained, strata, tmp_path):
    settings = [*TINY, "run.max_steps=3", "batch.micro_batch_size=1", "distributed.exact_reduction=true"]
    options = [argument for setting in settings for argument in ("--set", setting)]
    recipe = str(trained / "tiny.toml")
    launch = ("--out", "run", "--device", "cpu", "--nproc", "2")
    done = strata("train-lm", "--recipe", recipe, *options, *launch, timeout=300)
    assert done.returncode == 0, done.stderr
    done = strata("verify-manifest", "run", "--replay", "--json")
    assert done.returncode == 0, done.stderr
    replay = json.loads(done.stdout)["replay"]
    assert (replay["equal"], replay["comparison"]) == (True, "bit for bit")
    assert replay["environment"]["world_size"] == {"recorded": 2, "present": 1}

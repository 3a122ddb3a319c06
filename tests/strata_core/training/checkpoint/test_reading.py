import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from strata_core.errors import DataError
from strata_core.training.checkpoint import checkpoint_fault, load_checkpoint, newest_whole, read_tensors
from tests.strata_core.training.checkpoint.helpers import assert_holds_step, save_steps, tree

MUTATE = Path(__file__).resolve().parents[5] / "shared" / "cases" / "T04" / "mutate.py"


@pytest.fixture
def folder(tmp_path):
    save_steps(tmp_path / "checkpoints", [9, 10, 11])
    return tmp_path / "checkpoints"


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_loaded_checkpoint_holds_what_was_saved(folder):
    for step in (9, 10, 11):
        assert_holds_step(load_checkpoint(folder / f"step-{step:08d}"), step)


def test_links_are_followed(folder):
    loaded = load_checkpoint(folder / "latest")
    assert loaded.path == (folder / "step-00000011").resolve()
    assert_holds_step(loaded, 11)


def test_loaded_tensors_can_be_changed_and_the_files_stay(folder):
    before = tree(folder)
    load_checkpoint(folder / "latest").model["weight"].zero_()
    assert tree(folder) == before


def test_the_newest_is_chosen_by_number_and_nothing_is_said(folder):
    assert newest_whole(folder) == (folder / "step-00000011", [])


@pytest.mark.parametrize(
    ("damage", "file", "reason"),
    [
        (truncate, "model.safetensors", r"model.safetensors has \d+ bytes, expected \d+"),
        (truncate, "trainer.json", r"trainer.json has \d+ bytes, expected \d+"),
        (flip_a_bit, "optimizer.safetensors", r"optimizer.safetensors has SHA-256 \w{64}, expected \w{64}"),
        (flip_a_bit, "config.json", r"config.json has SHA-256"),
        (truncate, "manifest.json", r"manifest.json"),
        (Path.unlink, "manifest.json", r"manifest.json is missing"),
        (Path.unlink, "tokenizer.json", r"tokenizer.json is missing"),
        (Path.unlink, "model.safetensors", r"model.safetensors is missing"),
    ],
)
def test_a_damaged_newest_is_passed_over_with_the_reason_and_left_alone(folder, damage, file, reason):
    damage(folder / "step-00000011" / file)
    before = tree(folder)
    path, passed_over = newest_whole(folder)
    assert path == folder / "step-00000010"
    (line,) = passed_over
    assert line.startswith("step-00000011: ")
    with pytest.raises(DataError, match=reason) as raised:
        load_checkpoint(folder / "step-00000011")
    assert str(folder / "step-00000011") in raised.value.message
    assert tree(folder) == before


def test_without_verifying_only_sizes_are_looked_at(folder):
    flip_a_bit(folder / "step-00000011" / "model.safetensors")
    assert newest_whole(folder, verify=False) == (folder / "step-00000011", [])
    truncate(folder / "step-00000011" / "model.safetensors")
    assert newest_whole(folder, verify=False)[0] == folder / "step-00000010"


def test_an_empty_folder_with_a_higher_number_is_passed_over(folder):
    (folder / "step-00001011").mkdir()
    path, (line,) = newest_whole(folder)
    assert path == folder / "step-00000011"
    assert line.startswith("step-00001011: ") and "manifest.json is missing" in line


def test_a_copy_under_another_name_is_passed_over(folder):
    shutil.copytree(folder / "step-00000011", folder / "step-00000011.tmp")
    shutil.copytree(folder / "step-00000010", folder / "step-00000099")
    path, passed_over = newest_whole(folder)
    assert path == folder / "step-00000011"
    assert passed_over == [
        "step-00000011.tmp: not the name of a finished checkpoint",
        "step-00000099: holds step 10, another than its name says",
    ]


def test_a_link_to_nothing_is_mentioned_and_not_needed(folder):
    (folder / "latest").unlink()
    (folder / "latest").symlink_to("step_does_not_exist")
    assert newest_whole(folder) == (
        folder / "step-00000011",
        ["latest: points to step_does_not_exist, which is not there"],
    )


def test_a_file_replaced_by_a_link_is_a_fault(folder):
    model = folder / "step-00000011" / "model.safetensors"
    model.rename(folder / "elsewhere")
    model.symlink_to("../elsewhere")
    assert checkpoint_fault(folder / "step-00000011") == "model.safetensors is not a regular file"


def test_where_all_are_damaged_there_is_no_usable_checkpoint(folder):
    for step in (9, 10, 11):
        truncate(folder / f"step-{step:08d}" / "model.safetensors")
    with pytest.raises(DataError, match=r"no usable checkpoint.*step-00000011.*step-00000009") as raised:
        newest_whole(folder)
    assert raised.value.exit_code == 5


def test_a_folder_without_any_has_no_usable_checkpoint(tmp_path):
    with pytest.raises(DataError, match="no usable checkpoint"):
        newest_whole(tmp_path / "none")


def test_the_model_alone_is_read_where_the_optimizer_is_gone(folder):
    (folder / "step-00000011" / "optimizer.safetensors").unlink()
    loaded = load_checkpoint(folder / "step-00000011", with_optimizer=False)
    assert loaded.optimizer == {}
    assert loaded.model.keys() == {"weight", "bias"}


def test_a_manifest_that_lists_no_model_is_no_checkpoint(folder):
    path = folder / "step-00000011" / "manifest.json"
    content = json.loads(path.read_bytes())
    del content["checksum"]
    content["files"] = [entry for entry in content["files"] if entry["path"] != "model.safetensors"]
    path.write_text(json.dumps(content))
    assert "does not list model.safetensors" in checkpoint_fault(path.parent)


def test_the_manifest_of_something_else_is_no_checkpoint(folder):
    path = folder / "step-00000011" / "manifest.json"
    content = json.loads(path.read_bytes())
    del content["checksum"]
    path.write_text(json.dumps(content | {"describes": "corpus"}))
    assert "describes a corpus, not a checkpoint" in checkpoint_fault(path.parent)


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 8, (1 << 40).to_bytes(8, "little") + b"{}", b"\x02" + bytes(7) + b"[]"]
)
def test_what_is_not_safetensors_is_refused_by_name(tmp_path, data):
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(DataError, match=r"x\.safetensors: no readable safetensors"):
        read_tensors(tmp_path / "x.safetensors")


@pytest.mark.parametrize("kind", ["truncate", "missing", "empty", "tmp", "pointer"])
def test_t04_each_kind_of_damage_leaves_the_newest_complete_one(folder, kind):
    if not MUTATE.exists():
        pytest.skip("the shared acceptance cases are not here")
    subprocess.run([sys.executable, MUTATE, folder.parent, kind], check=True, capture_output=True)
    path, passed_over = newest_whole(folder)
    expected_step = 10 if kind in ("truncate", "missing") else 11
    assert_holds_step(load_checkpoint(path), expected_step)
    assert len(passed_over) == 1


def test_tensors_are_as_the_library_reads_them(folder):
    import safetensors.torch

    path = folder / "step-00000011" / "model.safetensors"
    loaded, expected = read_tensors(path), safetensors.torch.load_file(path)
    assert loaded.keys() == expected.keys()
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)

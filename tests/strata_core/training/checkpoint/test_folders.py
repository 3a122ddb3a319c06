import pytest

from strata_core.errors import UsageError
from strata_core.training.checkpoint.folders import (
    clear_leftovers,
    linked_step,
    named_checkpoint,
    put_in_place,
    step_folder_name,
    step_of,
    steps_in,
)


def make_folder(path, text):
    path.mkdir()
    (path / "file").write_text(text)


def test_steps_are_ordered_as_numbers(tmp_path):
    for step in (10000, 9, 10, 123456789, 99999999):
        (tmp_path / step_folder_name(step)).mkdir()
    assert steps_in(tmp_path) == [9, 10, 10000, 99999999, 123456789]


def test_only_the_exact_form_names_a_step():
    assert step_of("step-00000010") == 10
    for name in ("step-10", "step-00000010.tmp", ".step-00000010.partial", "step-0000001x", "latest"):
        assert step_of(name) is None


def test_a_folder_that_is_not_there_has_no_steps(tmp_path):
    assert steps_in(tmp_path / "none") == []


def test_a_link_to_nothing_names_no_step(tmp_path):
    (tmp_path / "best").symlink_to("step-00000003")
    assert linked_step(tmp_path / "best") is None
    (tmp_path / "step-00000003").mkdir()
    assert linked_step(tmp_path / "best") == 3
    assert linked_step(tmp_path / "latest") is None


def test_a_folder_takes_the_place_of_another(tmp_path):
    make_folder(tmp_path / "step-00000001", "old")
    make_folder(tmp_path / ".step-00000001.partial", "new")
    put_in_place(tmp_path / ".step-00000001.partial", tmp_path / "step-00000001")
    assert (tmp_path / "step-00000001" / "file").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


def test_leftovers_go_and_everything_else_stays(tmp_path):
    for name in (".step-00000001.partial", ".step-00000002.removing", ".step-00000003.aside"):
        make_folder(tmp_path / name, "leftover")
    make_folder(tmp_path / "step-00000003", "whole")
    for name in ("step-00000004.tmp", ".notes.partial", "mine"):
        make_folder(tmp_path / name, "not ours")
    clear_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".notes.partial", "mine", "step-00000003", "step-00000004.tmp",
    ]  # fmt: skip
    assert (tmp_path / "step-00000003" / "file").read_text() == "whole"


def test_a_folder_that_stepped_aside_for_one_that_never_came_is_brought_back(tmp_path):
    make_folder(tmp_path / ".step-00000003.aside", "old")
    clear_leftovers(tmp_path)
    assert (tmp_path / "step-00000003" / "file").read_text() == "old"


def test_a_checkpoint_is_called_latest_best_or_by_its_step(tmp_path):
    step = tmp_path / step_folder_name(7)
    step.mkdir()
    (tmp_path / "latest").symlink_to(step.name)
    assert named_checkpoint(tmp_path, "7") == step
    assert named_checkpoint(tmp_path, "latest").resolve() == step
    with pytest.raises(UsageError, match="has no checkpoint best"):
        named_checkpoint(tmp_path, "best")
    with pytest.raises(UsageError, match="--from newest: must be latest, best or the number of a step"):
        named_checkpoint(tmp_path, "newest")

import dataclasses
import resource
import threading
import time

import pytest

from strata_core.errors import StorageError
from strata_core.manifest import Manifest
from strata_core.observer import Observer
from strata_core.training.checkpoint import CheckpointStore, load_checkpoint, newest_whole
from tests.strata_core.training.checkpoint.helpers import (
    RUN,
    assert_holds_step,
    make_state,
    open_store,
    save_steps,
    tree,
)


@pytest.fixture
def file_size_limit():
    """A stand-in for a full disk: files of this process may not grow over the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda limit_bytes: resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("background", [True, False])
def test_a_saved_state_comes_back(tmp_path, background):
    store = open_store(tmp_path)
    assert store.save(10, make_state(10), background=background) >= 0.0
    store.wait()
    assert_holds_step(load_checkpoint(tmp_path / "step-00000010"), 10)
    assert_holds_step(load_checkpoint(tmp_path / "latest"), 10)


def test_a_state_without_tokenizer_and_moments_comes_back(tmp_path):
    store = open_store(tmp_path)
    store.save(0, dataclasses.replace(make_state(0), tokenizer=None, optimizer={}), background=False)
    loaded = load_checkpoint(tmp_path / "latest")
    assert loaded.tokenizer is None and loaded.optimizer == {}
    assert not (loaded.path / "tokenizer.json").exists()


def test_what_changes_after_the_copy_is_not_saved(tmp_path):
    store = open_store(tmp_path)
    for step in (1, 2, 3):
        state = make_state(step)
        store.save(step, state)
        store.wait_for_copy()
        for tensor in (*state.model.values(), *state.optimizer.values()):
            tensor.fill_(-1.0)
        state.trainer["progress"]["step"] = -1
    store.wait()
    for step in (1, 2, 3):
        assert_holds_step(load_checkpoint(tmp_path / f"step-{step:08d}"), step)


def test_the_manifest_names_step_files_and_parents_and_no_time(tmp_path):
    digests = {}
    save_steps(tmp_path, [5], on_saved=lambda step, path, digest: digests.update({step: digest}))
    manifest = Manifest.read(tmp_path / "step-00000005")
    assert manifest.describes == "checkpoint"
    assert manifest.record == {"step": 5} and manifest.state == {} and manifest.times == {}
    assert manifest.parents == (RUN,)
    assert [entry.path for entry in manifest.files] == [
        "config.json",
        "model.safetensors",
        "optimizer.safetensors",
        "tokenizer.json",
        "trainer.json",
    ]
    assert digests == {5: manifest.digest}
    assert load_checkpoint(tmp_path / "latest").digest == manifest.digest


def test_repetitions_are_equal_byte_for_byte(tmp_path):
    save_steps(tmp_path / "a", [1, 2, 3])
    save_steps(tmp_path / "b", [1, 2, 3])
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_floats_keep_their_last_bit(tmp_path):
    store = open_store(tmp_path)
    values = [0.1 + 0.2, 1e-308, 2.0**-1074, 1.7976931348623157e308, 1 / 3]
    trainer = {"progress": {"step": 1}, "values": values}
    store.save(1, dataclasses.replace(make_state(1), trainer=trainer), background=False)
    assert load_checkpoint(tmp_path / "latest").trainer["values"] == values


def test_the_last_two_stay_in_number_order(tmp_path):
    store = save_steps(tmp_path, range(1, 12), keep_last=2)
    assert store.steps() == [10, 11]
    assert (tmp_path / "latest").readlink().name == "step-00000011"


def test_the_best_stays_until_there_is_a_better_one(tmp_path):
    store = open_store(tmp_path, keep_last=1)
    for step in range(1, 9):
        store.save(step, make_state(step), best=step in (3, 6))
        store.wait()
        assert (tmp_path / "best").exists() == (step >= 3)
        assert store.steps() == sorted({3 if step < 6 else 6, step} if step >= 3 else {step})
    assert_holds_step(load_checkpoint(tmp_path / "best"), 6)


def test_every_kth_step_stays(tmp_path):
    assert save_steps(tmp_path, range(1, 12), keep_last=1, keep_every=4).steps() == [4, 8, 11]


def test_old_ones_go_only_after_the_new_one_is_complete(tmp_path):
    seen = []

    def on_saved(step, path, digest):
        seen.append(("saved", step, store.steps(), newest_whole(tmp_path)[0].name))

    def on_removing(step, path):
        seen.append(("removing", step, path.is_dir(), newest_whole(tmp_path)[0].name))

    store = open_store(tmp_path, keep_last=1, on_saved=on_saved, on_removing=on_removing)
    store.save(1, make_state(1))
    store.save(2, make_state(2))
    store.wait()
    assert seen == [
        ("saved", 1, [1], "step-00000001"),
        ("saved", 2, [1, 2], "step-00000002"),
        ("removing", 1, True, "step-00000002"),
    ]


def test_the_observer_hears_of_each_checkpoint(tmp_path):
    heard = []

    class Listener(Observer):
        def checkpoint_saved(self, step, path):
            heard.append((step, path))

    store = CheckpointStore(tmp_path, keep_last=1, keep_every=0, observer=Listener())
    store.save(4, make_state(4), background=False)
    assert heard == [(4, str(tmp_path / "step-00000004"))]


def test_a_second_save_waits_for_the_first(tmp_path):
    may_go_on, started = threading.Event(), threading.Event()

    def on_saved(step, path, digest):
        started.set()
        assert may_go_on.wait(60)

    store = open_store(tmp_path, on_saved=on_saved)
    store.save(1, make_state(1))
    assert started.wait(60)
    store.check()
    second = threading.Thread(target=lambda: store.save(2, make_state(2)))
    second.start()
    assert store.steps() == [1]
    may_go_on.set()
    second.join()
    store.wait()
    assert store.steps() == [1, 2]


@pytest.mark.parametrize("raised_from", ["save", "check", "wait"])
def test_t11_a_full_disk_surfaces_and_the_old_checkpoint_stays(tmp_path, file_size_limit, raised_from):
    store = save_steps(tmp_path, [5], keep_last=1)
    before = tree(tmp_path)
    file_size_limit(600)
    store.save(10, make_state(10, rows=3000))
    if raised_from == "check":
        with pytest.raises(StorageError) as raised:
            for _ in range(10_000):
                store.check()
                time.sleep(0.01)
    else:
        with pytest.raises(StorageError) as raised:
            store.wait() if raised_from == "wait" else store.save(11, make_state(11))
    file_size_limit(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    assert str(tmp_path / "step-00000010" / "model.safetensors") in raised.value.message
    assert "bytes)" in raised.value.message
    assert tree(tmp_path) == before
    store.wait()
    store.save(10, make_state(10))
    store.wait()
    assert store.steps() == [10]
    assert_holds_step(load_checkpoint(tmp_path / "latest"), 10)


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError):
        open_store(tmp_path / "file" / "checkpoints")


def test_the_same_state_saved_again_changes_no_file(tmp_path):
    save_steps(tmp_path, [1, 2])
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("step-*/*")}
    save_steps(tmp_path, [2])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("step-*/*")} == times
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("damage", ["content", "cut", "other state", "empty"])
def test_a_step_that_is_there_but_damaged_or_different_is_replaced(tmp_path, damage):
    store = open_store(tmp_path)
    store.save(3, make_state(8 if damage == "other state" else 3), background=False)
    model = tmp_path / "step-00000003" / "model.safetensors"
    if damage == "content":
        model.write_bytes(bytes(model.stat().st_size))
    elif damage == "cut":
        model.write_bytes(model.read_bytes()[:-1])
    elif damage == "empty":
        for path in (tmp_path / "step-00000003").iterdir():
            path.unlink()
    store.save(3, make_state(3), background=False)
    assert_holds_step(load_checkpoint(tmp_path / "step-00000003"), 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "step-00000003"]


def test_opening_clears_what_a_kill_left_behind(tmp_path):
    save_steps(tmp_path, [1])
    (tmp_path / ".step-00000002.partial").mkdir()
    (tmp_path / ".step-00000002.partial" / "model.safetensors").write_bytes(b"half")
    (tmp_path / ".step-00000000.removing").mkdir()
    open_store(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "step-00000001"]


def test_going_back_makes_the_earlier_step_the_newest(tmp_path):
    removed = []
    store = save_steps(tmp_path, [1, 2, 3, 4], keep_last=4, on_removing=lambda step, path: removed.append(step))
    store.save(4, make_state(4), best=True)
    store.go_back_to(2)
    assert removed == [4, 3]
    assert store.steps() == [1, 2]
    assert newest_whole(tmp_path) == (tmp_path / "step-00000002", [])
    assert (tmp_path / "latest").readlink().name == "step-00000002"
    assert not (tmp_path / "best").is_symlink()

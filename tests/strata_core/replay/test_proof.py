"""Replays of tiny runs: honest ones come out equal, and whatever was put in place of what training gave is found."""

from __future__ import annotations

import json
import platform
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from strata_core.errors import DataError, UsageError
from strata_core.launch.starting import resume_run, train
from strata_core.manifest import Manifest, hash_file, hash_files, verify
from strata_core.observer import Observer
from strata_core.replay.proof import ROUNDING_TOLERANCE, replay
from strata_core.tasks.data import open_data
from strata_core.tasks.language_model import task as language_model
from strata_core.tasks.registry import make_task
from strata_core.training.run.folder import RunFolder
from strata_core.training.stop import StopRequests
from tests.drills.forking import records_without_timing

CADENCE = ("checkpoint.every=4", "checkpoint.keep_last=20", "evaluation.every=5", "batch.num_workers=0")


@pytest.fixture(autouse=True)
def one_thread():
    """Several threads on so small a model only wait for each other."""
    present = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(present)


@pytest.fixture
def honest(module_folder, tiny_recipe):
    """A finished 12-step run with checkpoints at 4, 5 (best), 8, 10 (best) and 12, made once."""
    run = module_folder / "honest"
    if not run.exists():
        train(tiny_recipe(*CADENCE), run, device="cpu")
    return run


@pytest.fixture
def forged(honest, tmp_path):
    """A copy of the honest run to tamper with; its corpus is found where the recipe says."""
    run = tmp_path / "forged"
    shutil.copytree(honest, run, symlinks=True)
    return run


def without_code(environment):
    """Somebody may commit or edit the code while the tests run."""
    return {name: values for name, values in environment.items() if not name.startswith("code")}


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def checkpoint(run, step):
    return run / "checkpoints" / f"step-{step:08d}"


def rewrite_tensors(file, change):
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def rewrite_manifests(run, step):
    """Makes the manifests of a checkpoint and of its run vouch for what is there, as a careful forger would."""
    rewrite_manifests_of_folder(run, step)
    assert verify(run).ok


def rewrite_manifests_of_folder(run, step):
    """The same where the run's own record was changed too, so that its checkpoints no longer name it."""
    folder = checkpoint(run, step)
    manifest = Manifest.read(folder)
    names = [entry.path for entry in manifest.files]
    manifest = replace(manifest, files=tuple(hash_files(folder, names)))
    manifest.write(folder)
    of_run = Manifest.read(run)
    listed = [
        {**entry, "digest": manifest.digest} if entry["path"] == f"checkpoints/{folder.name}" else entry
        for entry in of_run.state["checkpoints"]
    ]
    logs = [vars(hash_file(run / entry["path"], name=entry["path"])) for entry in of_run.state["logs"]]
    replace(of_run, state={**of_run.state, "checkpoints": listed, "logs": logs}).write(run)


def stop_in_step(step, monkeypatch, stop):
    plan = language_model.LanguageModelTask.plan

    def planning(self, number):
        if number == step - 1:
            stop.request("the test says so")
        return plan(self, number)

    monkeypatch.setattr(language_model.LanguageModelTask, "plan", planning)


@pytest.mark.parametrize(("step", "begins_at"), [(None, 10), (4, 0), (5, 4), (8, 5), (10, 8)])
def test_an_honest_run_comes_out_equal_at_every_checkpoint(honest, step, begins_at):
    outcome = replay(honest, step=step)
    assert (outcome.from_step, outcome.to_step) == (begins_at, step or 12)
    assert outcome.equal and outcome.differences == () and outcome.tolerance is None
    assert without_code(outcome.environment) == {}
    saved = load_file(checkpoint(honest, 12) / "model.safetensors")
    assert outcome.tensors == len(saved) * 4


def test_the_run_is_left_as_it_is(honest):
    before = contents(honest)
    replay(honest)
    assert contents(honest) == before


def test_a_stopped_run_comes_out_equal_and_so_does_it_when_it_has_gone_on(tiny_recipe, tmp_path, monkeypatch):
    stop = StopRequests()
    with monkeypatch.context() as patch:
        stop_in_step(7, patch, stop)
        assert train(tiny_recipe(*CADENCE), tmp_path / "run", device="cpu", stop=stop)["steps"] == 7
    assert replay(tmp_path / "run").to_step == 7
    assert replay(tmp_path / "run").equal
    resume_run(tmp_path / "run", device="cpu")
    for step in (7, 8, 12):
        assert replay(tmp_path / "run", step=step).equal


def test_a_run_stopped_in_an_evaluation_comes_out_equal(tiny_recipe, tmp_path, monkeypatch):
    stop = StopRequests()
    evaluate = language_model.LanguageModelTask.evaluate

    def interrupted(self, model, context):
        stop.request("now")
        return evaluate(self, model, context)

    with monkeypatch.context() as patch:
        patch.setattr(language_model.LanguageModelTask, "evaluate", interrupted)
        train(tiny_recipe(*CADENCE), tmp_path / "run", device="cpu", stop=stop)
    trainer = json.loads((checkpoint(tmp_path / "run", 5) / "trainer.json").read_text())
    assert trainer["evaluation_pending"]
    outcome = replay(tmp_path / "run")
    assert (outcome.from_step, outcome.to_step, outcome.equal) == (4, 5, True)
    resume_run(tmp_path / "run", device="cpu")
    assert replay(tmp_path / "run", step=5).equal


def test_settings_are_those_that_applied_at_each_step(tiny_recipe, tmp_path):
    # Step 12 was the last one and was evaluated for that; steps from there on are evaluated more often.
    run = tmp_path / "run"
    train(tiny_recipe(*CADENCE), run, device="cpu")
    resume_run(run, overrides=["run.max_steps=15", "evaluation.every=7", "checkpoint.every=100"], device="cpu")
    shutil.rmtree(checkpoint(run, 12))
    RunFolder(run).drop_checkpoint(checkpoint(run, 12))
    for step in (10, 14, 15):
        assert replay(run, step=step).equal
    assert replay(run, step=14).from_step == 10


def test_steps_that_were_done_again_are_replayed_as_the_second_time(honest, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(honest, run, symlinks=True)
    resume_run(run, start_from="8", overrides=["evaluation.every=3"], device="cpu")
    assert [entry["step"] for entry in records_without_timing(run / "evaluations.jsonl")] == [5, 9, 12]
    assert replay(run).equal


def test_a_warm_start_is_replayed_from_the_same_weights(honest, tiny_recipe, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(honest, source, symlinks=True)
    run = tmp_path / "run"
    train(tiny_recipe(*CADENCE, f"run.warm_start={str(source)!r}", "run.max_steps=3"), run, device="cpu")
    assert replay(run).equal
    shutil.rmtree(source)
    with pytest.raises(DataError, match=r"cannot be replayed here.*warm_start"):
        replay(run)


NUDGED = "transformer.blocks.1.attention_norm.weight"


def nudge(amount, name=NUDGED):
    def change(tensors):
        tensors[name].view(-1)[3] += amount

    return change


def test_weights_replaced_together_with_all_manifests_are_found(forged):
    rewrite_tensors(checkpoint(forged, 12) / "model.safetensors", nudge(0.125))
    rewrite_manifests(forged, 12)
    outcome = replay(forged)
    assert not outcome.equal and outcome.first_differing_step == 12
    (difference,) = outcome.differences
    assert (difference.step, difference.file, difference.name) == (12, "model.safetensors", NUDGED)
    assert difference.largest == pytest.approx(0.125, rel=1e-5)
    assert difference.what == "1 of 16 elements differ"
    assert replay(forged, step=10).equal


def test_a_checkpoint_replaced_in_the_middle_is_found_from_both_sides(forged):
    rewrite_tensors(checkpoint(forged, 8) / "model.safetensors", nudge(0.125))
    rewrite_manifests(forged, 8)
    assert [difference.name for difference in replay(forged, step=8).differences] == [NUDGED]
    # What follows does not follow from it: the first step after it has another loss than the run logged.
    after = replay(forged, step=10)
    assert after.first_differing_step == 9
    assert after.differences[0].is_tensor and after.differences[0].step == 10


@pytest.mark.parametrize("moment", ["exp_avg", "exp_avg_sq"])
def test_one_changed_bit_in_a_moment_is_found(forged, moment):
    name = f"{NUDGED}.{moment}"

    def change(tensors):
        bits = tensors[name].view(torch.int32)
        bits[5] ^= 1

    rewrite_tensors(checkpoint(forged, 12) / "optimizer.safetensors", change)
    rewrite_manifests(forged, 12)
    (difference,) = replay(forged).differences
    assert (difference.file, difference.name) == ("optimizer.safetensors", name)
    assert 0 < difference.largest < 1e-6


def test_a_tensor_added_or_taken_away_is_found(forged):
    def change(tensors):
        tensors["extra"] = torch.zeros(2)
        del tensors[NUDGED]

    rewrite_tensors(checkpoint(forged, 12) / "model.safetensors", change)
    rewrite_manifests(forged, 12)
    found = {difference.name: difference.what for difference in replay(forged).differences}
    assert found == {NUDGED: "not in the checkpoint", "extra": "not what this recipe makes"}


@pytest.mark.parametrize(
    ("file", "old", "new", "name"),
    [
        ("trainer.json", '"evaluations_without_gain": 0', '"evaluations_without_gain": 1', "evaluations_without_gain"),
        ("config.json", '"n_heads": 2', '"n_heads": 4', "model.n_heads"),
    ],
)
def test_a_changed_value_beside_the_tensors_is_found(forged, file, old, new, name):
    rewrite_text(checkpoint(forged, 12) / file, old, new)
    rewrite_manifests(forged, 12)
    (difference,) = replay(forged).differences
    assert (difference.file, difference.name) == (file, name)


def test_another_tokenizer_in_a_checkpoint_is_found(forged):
    rewrite_text(checkpoint(forged, 12) / "tokenizer.json", "{}", "{ }")
    rewrite_manifests(forged, 12)
    assert [difference.file for difference in replay(forged).differences] == ["tokenizer.json"]


def rewrite_text(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("log", ["metrics.jsonl", "evaluations.jsonl"])
def test_a_prettier_loss_in_the_records_is_found(forged, log):
    lines = (forged / log).read_text().splitlines()
    record = json.loads(lines[-1])
    record["loss"] *= 0.5
    (forged / log).write_text("\n".join([*lines[:-1], json.dumps(record)]) + "\n")
    rewrite_manifests(forged, 12)
    (difference,) = replay(forged).differences
    assert (difference.file, difference.name, difference.step) == (log, "loss", 12)
    assert difference.claimed == record["loss"] and difference.relative == pytest.approx(0.5)


def with_record(run, **changes):
    """Rewrites the recorded environment of a run."""
    manifest = Manifest.read(run)
    environment = {**manifest.record["environment"], **changes}
    replace(manifest, record={**manifest.record, "environment": environment}).write(run)


def test_sums_over_ranks_may_be_off_by_rounding_and_no_more(forged):
    with_record(forged, world_size=4)
    file = checkpoint(forged, 12) / "model.safetensors"
    way = load_file(file)[NUDGED] - load_file(checkpoint(forged, 10) / "model.safetensors")[NUDGED]
    rewrite_tensors(file, nudge(0.5 * ROUNDING_TOLERANCE * float(way.norm())))
    rewrite_manifests_of_folder(forged, 12)
    outcome = replay(forged)
    assert outcome.equal and outcome.tolerance == ROUNDING_TOLERANCE
    assert outcome.largest_relative == pytest.approx(0.5 * ROUNDING_TOLERANCE, rel=0.05)
    assert "4 ranks" in outcome.notes[0]
    rewrite_tensors(file, nudge(3 * ROUNDING_TOLERANCE * float(way.norm())))
    rewrite_manifests_of_folder(forged, 12)
    (difference,) = replay(forged).differences
    assert difference.name == NUDGED


def test_a_weight_behind_its_average_is_held_against_its_own_way_from_the_runs_start(tiny_recipe, tmp_path):
    run, recipe = tmp_path / "run", tiny_recipe(*CADENCE, "optimizer.average_decay=0.6", "run.max_steps=4")
    train(recipe, run, device="cpu")
    assert replay(run).equal
    with_record(run, world_size=4)
    start = make_task(recipe, open_data(recipe)).build_model().get_parameter(NUDGED).detach()
    file, name = checkpoint(run, 4) / "optimizer.safetensors", f"{NUDGED}.iterate"
    way = float((load_file(file)[name] - start).norm())
    rewrite_tensors(file, nudge(3 * ROUNDING_TOLERANCE * way, name))
    rewrite_manifests_of_folder(run, 4)
    (difference,) = replay(run).differences
    assert difference.name == name
    assert difference.relative == pytest.approx(3 * ROUNDING_TOLERANCE, rel=0.05)


def test_the_recorded_number_of_threads_is_used_and_given_back(forged):
    present = torch.get_num_threads()
    with_record(forged, threads=present + 1)
    outcome = replay(forged)
    assert outcome.threads == present + 1
    assert torch.get_num_threads() == present


def test_environments_that_differ_are_shown_side_by_side(forged):
    libraries = Manifest.read(forged).record["environment"]["libraries"]
    with_record(forged, python="3.1.0", libraries={**libraries, "torch": "0.4"})
    assert without_code(replay(forged).environment) == {
        "python": ("3.1.0", platform.python_version()),
        "libraries.torch": ("0.4", libraries["torch"]),
    }


def test_a_device_that_is_not_here_is_no_verdict(forged):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with_record(forged, device="cuda")
    with pytest.raises(DataError, match=r"cannot be replayed here.*CUDA"):
        replay(forged)


def run_with_own_corpus(folder, byte_corpus, tiny_recipe):
    shutil.copytree(byte_corpus, folder / "corpus")
    settings = (*CADENCE, f"corpus.path={str(folder / 'corpus')!r}", "run.max_steps=5")
    train(tiny_recipe(*settings), folder / "run", device="cpu")


def test_a_corpus_that_moved_together_with_the_run_is_found(tmp_path, byte_corpus, tiny_recipe):
    run_with_own_corpus(tmp_path / "there", byte_corpus, tiny_recipe)
    shutil.move(tmp_path / "there", tmp_path / "here")
    assert replay(tmp_path / "here" / "run").equal


def test_without_its_corpus_a_run_cannot_be_replayed(tmp_path, byte_corpus, tiny_recipe):
    run_with_own_corpus(tmp_path, byte_corpus, tiny_recipe)
    shard = tmp_path / "corpus" / "train-00000.bin"
    data = shard.read_bytes()
    shard.write_bytes(data[:100] + b"a\x00" + data[102:])
    with pytest.raises(DataError, match=r"train-00000\.bin: another content"):
        replay(tmp_path / "run")
    shutil.rmtree(tmp_path / "corpus")
    with pytest.raises(DataError, match=r"cannot be replayed here.*no such corpus"):
        replay(tmp_path / "run")


def test_a_step_without_checkpoint_is_refused_with_those_there_are(honest):
    with pytest.raises(UsageError) as caught:
        replay(honest, step=7)
    assert caught.value.hint == "it has steps 4, 5, 8, 10, 12"


def test_a_run_without_checkpoints_cannot_be_replayed(forged):
    for step in (4, 5, 8, 10, 12):
        RunFolder(forged).drop_checkpoint(checkpoint(forged, step))
    with pytest.raises(DataError, match="no checkpoint"):
        replay(forged)


def test_a_recorded_change_that_no_resume_may_make_is_refused(forged):
    environment = Manifest.read(forged).record["environment"]
    events = RunFolder(forged).events
    events.append({"event": "settings changed", "step": 10, "changes": {"optimizer.lr": [0.01, 0.02]}})
    events.append({"event": "environment", "step": 10, **environment})
    with pytest.raises(DataError, match=r"events\.jsonl.*optimizer\.lr"):
        replay(forged)


def test_progress_is_told_in_steps(honest):
    class Steps(Observer):
        def __init__(self):
            self.seen = []

        def stage_started(self, name, total, unit):
            self.seen.append((name, total, unit))

        def stage_advanced(self, done, detail=""):
            self.seen.append(done)

    observer = Steps()
    replay(honest, step=8, observer=observer)
    assert observer.seen[-4:] == [("replay", 3, "steps"), 1, 2, 3]

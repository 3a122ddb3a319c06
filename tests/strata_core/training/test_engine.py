"""Whole runs of a tiny model: what is recorded, how they stop, and that they go on as if they had not."""

import gc
import json
import math
import os
import shutil
import weakref
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from strata_core.corpus.reading import open_corpus
from strata_core.errors import DataError, DivergedError, PlaceTakenError, RecipeError, UsageError
from strata_core.launch import session
from strata_core.launch import starting as launch
from strata_core.launch.starting import resume_run, train
from strata_core.manifest import Manifest, verify
from strata_core.recipes import dump_recipe
from strata_core.tasks.language_model import task as language_model
from strata_core.training.checkpoint import load_checkpoint
from strata_core.training.engine import Engine
from strata_core.training.run.folder import RunFolder
from strata_core.training.step import TrainingStep
from strata_core.training.stop import StopRequests
from tests.drills.forking import differences, records_without_timing
from tests.strata_core.conftest import made_up_documents, write_byte_corpus

CADENCE = ("checkpoint.every=4", "checkpoint.keep_last=20", "evaluation.every=5")


@pytest.fixture
def undisturbed(module_folder, tiny_recipe):
    """A finished 12-step run, made once."""
    run = module_folder / "undisturbed"
    if not run.exists():
        train(tiny_recipe(*CADENCE), run, device="cpu")
    return run


class Warnings:
    """An observer that keeps warnings and nothing else."""

    def __init__(self):
        self.texts = []

    def __getattr__(self, name):
        return (lambda text: self.texts.append(text)) if name == "warning" else (lambda *_, **__: None)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stop_after(step, task_class, monkeypatch, stop):
    """Asks for a stop while step number `step` (from 1) is being planned."""
    plan = task_class.plan

    def planning(self, number):
        if number == step - 1:
            stop.request("the test says so")
        return plan(self, number)

    monkeypatch.setattr(task_class, "plan", planning)


def test_each_step_is_recorded_once_with_the_promised_keys(undisturbed):
    records = [json.loads(line) for line in (undisturbed / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == list(range(1, 13))
    for record in records:
        assert {"step", "loss", "loss_lm", "lr", "grad_norm", "tokens_seen", "samples_seen", "timing"} == set(record)
        assert {"tokens_per_second", "step_seconds", "memory_bytes"} == set(record["timing"])
        assert record["tokens_seen"] == record["step"] * 4 * 32
        assert record["samples_seen"] == record["step"] * 4
    assert records[-1]["loss"] < records[0]["loss"]


def test_the_last_step_is_recorded_whatever_the_cadence(tiny_recipe, tmp_path):
    train(tiny_recipe("run.log_every=5"), tmp_path / "run", device="cpu")
    assert [record["step"] for record in records_without_timing(tmp_path / "run" / "metrics.jsonl")] == [5, 10, 12]


def test_repeating_a_run_gives_the_same_bytes(undisturbed, tiny_recipe, tmp_path):
    train(tiny_recipe(*CADENCE), tmp_path / "again", device="cpu")
    assert differences(tmp_path / "again", undisturbed, 12) == []


def test_reading_ahead_changes_nothing(undisturbed, tiny_recipe, tmp_path):
    train(tiny_recipe(*CADENCE, "batch.num_workers=0"), tmp_path / "inline", device="cpu")
    changed = differences(tmp_path / "inline", undisturbed, 12)
    # The manifest names its run, whose recipe differs in this one setting.
    assert changed == ["step-00000012/manifest.json"]


@pytest.mark.parametrize("settings", [("evaluation.every=0",), ("evaluation.every=3",), ("evaluation.batches=1",)])
def test_evaluating_at_other_times_leaves_the_training_alone(undisturbed, tiny_recipe, tmp_path, settings):
    train(tiny_recipe(*CADENCE, *settings), tmp_path / "run", device="cpu")
    changed = differences(tmp_path / "run", undisturbed, 12)
    assert not {"metrics.jsonl", "step-00000012/model.safetensors", "step-00000012/optimizer.safetensors"} & set(
        changed
    )


def test_another_seed_is_another_run(undisturbed, tiny_recipe, tmp_path):
    train(tiny_recipe(*CADENCE, "run.seed=8"), tmp_path / "run", device="cpu")
    assert "metrics.jsonl" in differences(tmp_path / "run", undisturbed, 12)


@pytest.mark.parametrize("step", [1, 5, 7, 8])
def test_a_stop_request_saves_the_step_and_the_resumed_run_is_the_undisturbed_one(
    undisturbed, tiny_recipe, tmp_path, monkeypatch, step
):
    stop = StopRequests()
    with monkeypatch.context() as patch:
        stop_after(step, language_model.LanguageModelTask, patch, stop)
        result = train(tiny_recipe(*CADENCE, "batch.num_workers=0"), tmp_path / "run", device="cpu", stop=stop)
    assert result["stopped_because"] == "preempted"
    assert result["steps"] == step
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "latest").trainer["progress"]["step"] == step
    event = [e for e in records_without_timing(tmp_path / "run" / "events.jsonl") if e["event"] == "preempted"]
    assert event == [{"event": "preempted", "step": step, "reason": "the test says so"}]
    assert not RunFolder(tmp_path / "run").manifest.state["final"]

    assert resume_run(tmp_path / "run", device="cpu")["stopped_because"] == "finished"
    assert differences(tmp_path / "run", undisturbed, 12) == ["step-00000012/manifest.json"]


def test_blocks_computed_again_from_a_resume_on_change_no_bit_of_the_run(
    undisturbed, tiny_recipe, tmp_path, monkeypatch
):
    run, stop = tmp_path / "run", StopRequests()
    with monkeypatch.context() as patch:
        stop_after(5, language_model.LanguageModelTask, patch, stop)
        train(tiny_recipe(*CADENCE, "batch.num_workers=0"), run, device="cpu", stop=stop)
    resume_run(run, overrides=["memory.recompute=blocks"], device="cpu")
    assert RunFolder(run).recipe_with([])[0].memory.recompute == "blocks"
    assert differences(run, undisturbed, 12) == ["step-00000012/manifest.json"]


def test_a_stop_during_an_evaluation_leaves_it_to_the_resumed_run(undisturbed, tiny_recipe, tmp_path, monkeypatch):
    evaluate = language_model.LanguageModelTask.evaluate

    stop = StopRequests()

    def interrupted(self, model, context):
        stop.request("now")
        return evaluate(self, model, context)

    with monkeypatch.context() as patch:
        patch.setattr(language_model.LanguageModelTask, "evaluate", interrupted)
        result = train(tiny_recipe(*CADENCE), tmp_path / "run", device="cpu", stop=stop)
        # The resumed run is stopped while it does that evaluation, and takes no step before it is done.
        again = resume_run(tmp_path / "run", device="cpu", stop=(stop := StopRequests()))
    assert (again["stopped_because"], again["steps"]) == ("preempted", 5)
    assert (result["stopped_because"], result["steps"]) == ("preempted", 5)
    assert records_without_timing(tmp_path / "run" / "evaluations.jsonl") == []
    # A resume that is killed between the evaluation's record and the checkpoint leaves the record behind.
    RunFolder(tmp_path / "run").evaluations.append({"step": 5, "loss": 1.0, "timing": {}})
    resume_run(tmp_path / "run", device="cpu")
    assert differences(tmp_path / "run", undisturbed, 12) == []


def test_resuming_a_finished_run_says_so_and_changes_nothing(undisturbed):
    before = contents(undisturbed)
    result = resume_run(undisturbed, device="cpu")
    assert result["stopped_because"] == "already finished"
    assert result["steps"] == 12
    assert contents(undisturbed) == before


def test_a_later_target_goes_on_at_the_final_rate_and_is_remembered(undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    result = resume_run(run, overrides=["run.max_steps=14"], device="cpu")
    assert result["steps"] == 14
    records = records_without_timing(run / "metrics.jsonl")
    assert [record["step"] for record in records] == list(range(1, 15))
    assert [record["lr"] for record in records[11:]] == [pytest.approx(0.001)] * 3
    assert resume_run(run, device="cpu")["stopped_because"] == "already finished"
    assert RunFolder(run).recipe_with([])[0].run.max_steps == 14


def test_a_run_from_before_a_derived_setting_goes_on_as_if_it_had_been_written(
    undisturbed, tiny_recipe, tmp_path, monkeypatch
):
    today, earlier = tmp_path / "today", tmp_path / "earlier"
    shutil.copytree(undisturbed, today, symlinks=True)

    def dumped_by_an_earlier_version(recipe):
        lines = dump_recipe(recipe).splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith((b"schedule_steps", b"anneal_steps"))]
        assert len(lines) - len(kept) == 2
        return b"".join(kept)

    with monkeypatch.context() as patch:
        patch.setattr(launch, "dump_recipe", dumped_by_an_earlier_version)
        train(tiny_recipe(*CADENCE), earlier, device="cpu")
    for run in (today, earlier):
        resume_run(run, overrides=["run.max_steps=13"], device="cpu")
        resume_run(run, overrides=["run.max_steps=14"], device="cpu")
    recipe = RunFolder(earlier).recipe_with([])[0]
    assert recipe.model.graph_object_memory.anneal_steps == recipe.optimizer.schedule_steps == 12
    assert recipe == RunFolder(today).recipe_with([])[0]
    assert differences(earlier, today, 14) == ["step-00000014/manifest.json"]
    assert "_steps = 12" not in (today / "overrides.toml").read_text(), "what the recipe says is not said again"


@pytest.mark.parametrize(
    "change",
    [
        "optimizer.lr=0.005",
        "batch.batch_size=8",
        "run.seed=8",
        "model.d_model=32",
        "run.max_steps=11",
        "batch.seq_len=16",
    ],
)
def test_a_change_that_would_alter_the_past_is_refused_with_both_values(undisturbed, change):
    before = contents(undisturbed)
    key, value = change.split("=")
    with pytest.raises(RecipeError) as caught:
        resume_run(undisturbed, overrides=[change], device="cpu")
    assert any(key in problem and value in problem for problem in caught.value.problems)
    assert contents(undisturbed) == before


def test_another_corpus_is_refused_with_both_digests(tiny_recipe, tmp_path, byte_corpus):
    corpus = tmp_path / "corpus"
    shutil.copytree(byte_corpus, corpus)
    setting = f"corpus.path={str(corpus)!r}"
    stop = StopRequests()
    stop.request("at once")
    train(tiny_recipe(setting), tmp_path / "run", device="cpu", stop=stop)
    old = Manifest.read(corpus).digest
    shutil.rmtree(corpus)
    write_byte_corpus(corpus, {"train": made_up_documents(25, seed=1), "val": made_up_documents(6, seed=2)})
    with pytest.raises(RecipeError, match=f"{Manifest.read(corpus).digest}.*{old}"):
        resume_run(tmp_path / "run", device="cpu")


def state_of_checkpoints(run):
    """Names and targets of links in the checkpoints folder, and every file of the run."""
    entries = (run / "checkpoints").iterdir()
    return {entry.name: os.readlink(entry) if entry.is_symlink() else None for entry in entries}, contents(run)


def test_no_engine_is_left_when_the_ranks_part(tiny_recipe, tmp_path, monkeypatch):
    """DistributedDataParallel that outlives its process group can hang a rank for good as it goes."""
    engines, left = [], []
    init, joined = Engine.__init__, session.joined_ranks

    def noted(self, *arguments, **settings):
        init(self, *arguments, **settings)
        engines.append(weakref.ref(self))

    @contextmanager
    def parting(*arguments):
        with joined(*arguments) as ranks:
            try:
                yield ranks
            finally:
                left.append([engine() for engine in engines])

    def failing(*_):
        raise RuntimeError("in the middle of a step")

    monkeypatch.setattr(Engine, "__init__", noted)
    monkeypatch.setattr(session, "joined_ranks", parting)
    gc.disable()
    try:
        train(tiny_recipe("run.max_steps=3"), tmp_path / "run", device="cpu")
        resume_run(tmp_path / "run", overrides=["run.max_steps=4"], device="cpu")
        monkeypatch.setattr(TrainingStep, "update", failing)
        with pytest.raises(RuntimeError, match="in the middle"):
            resume_run(tmp_path / "run", overrides=["run.max_steps=5"], device="cpu")
    finally:
        gc.enable()
    assert left == [[None], [None] * 2, [None] * 3]


def test_a_refused_resume_from_an_earlier_step_leaves_the_latest_checkpoint_the_latest(
    tiny_recipe, tmp_path, byte_corpus
):
    corpus = tmp_path / "corpus"
    shutil.copytree(byte_corpus, corpus)
    run = tmp_path / "run"
    train(tiny_recipe(f"corpus.path={str(corpus)!r}", "checkpoint.every=1", "run.max_steps=3"), run, device="cpu")
    RunFolder(run).close(final=False)
    before = state_of_checkpoints(run)
    shutil.rmtree(corpus)
    write_byte_corpus(corpus, {"train": made_up_documents(25, seed=1), "val": made_up_documents(6, seed=2)})
    with pytest.raises(RecipeError, match="the run was started with"):
        resume_run(run, start_from="1", overrides=["run.max_steps=4"], device="cpu")
    assert state_of_checkpoints(run) == before
    assert before[0]["latest"] == "step-00000003"


def test_a_checkpoint_that_cannot_be_taken_over_leaves_the_later_ones(undisturbed, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    before = state_of_checkpoints(run)

    def refused(self, checkpoint):
        raise DataError("it does not fit the model")

    monkeypatch.setattr(Engine, "restore", refused)
    with pytest.raises(DataError, match="does not fit"):
        resume_run(run, start_from="4", device="cpu")
    assert state_of_checkpoints(run) == before


def test_a_step_at_which_nothing_is_left_to_do_does_not_become_the_latest(undisturbed, tmp_path, monkeypatch):
    """At step 8 the patience asked for now is exhausted; the run had more and went on to step 12."""
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    RunFolder(run).close(final=False)
    before = state_of_checkpoints(run)
    checkpoint = load_checkpoint(run / "checkpoints" / "step-00000008")
    exhausted = replace(checkpoint, trainer={**checkpoint.trainer, "evaluations_without_gain": 1})
    monkeypatch.setattr(launch, "load_checkpoint", lambda path: exhausted)
    result = resume_run(run, start_from="8", overrides=["evaluation.patience=1"], device="cpu")
    assert result["stopped_because"] == "already finished"
    assert state_of_checkpoints(run) == before


def test_the_best_checkpoint_of_an_earlier_step_is_the_best_again(undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    assert (run / "checkpoints" / "best").resolve().name == "step-00000012"
    stop = StopRequests()
    stop.request("at once")
    resume_run(run, start_from="8", device="cpu", stop=stop)
    assert (run / "checkpoints" / "best").resolve().name == "step-00000005"
    assert verify(run).ok


@pytest.mark.parametrize("average", ["optimizer.average_decay=0.0", "optimizer.average_decay=0.5"])
def test_a_disk_without_room_for_a_checkpoint_is_told_of_at_the_start_and_at_a_resume(
    tiny_recipe, tmp_path, monkeypatch, average
):
    asked = []

    def one_byte_short(folder, needed_bytes):
        asked.append((folder.name, needed_bytes))
        return 1

    monkeypatch.setattr(session, "missing_bytes", one_byte_short)
    warned, run = Warnings(), tmp_path / "run"
    train(tiny_recipe(average, "run.max_steps=2", "optimizer.warmup_steps=1"), run, device="cpu", observer=warned)
    resume_run(run, overrides=["run.max_steps=3"], device="cpu", observer=warned)
    saved = load_checkpoint(run / "checkpoints" / "step-00000003")
    size_bytes = sum(tensor.nbytes for tensor in [*saved.model.values(), *saved.optimizer.values()])
    assert asked == [("run", size_bytes), ("checkpoints", size_bytes)]
    assert len(warned.texts) == 2 and all("saving will fail" in text for text in warned.texts)


def test_another_tokenizer_of_the_same_size_is_refused(tiny_recipe, tmp_path, byte_corpus):
    corpus = tmp_path / "corpus"
    shutil.copytree(byte_corpus, corpus)
    stop = StopRequests()
    stop.request("at once")
    train(tiny_recipe(f"corpus.path={str(corpus)!r}"), tmp_path / "run", device="cpu", stop=stop)
    (corpus / "tokenizer.json").write_text("[]\n")
    with pytest.raises((RecipeError, DataError), match=r"tokenizer\.json"):
        resume_run(tmp_path / "run", device="cpu")


def test_the_newest_whole_checkpoint_is_taken_with_one_warning(undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    damaged = run / "checkpoints" / "step-00000012" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    observer = Warnings()
    resume_run(run, device="cpu", observer=observer)
    assert len(observer.texts) == 1
    assert "step-00000010" in observer.texts[0] and "step-00000012" in observer.texts[0]
    assert differences(run, undisturbed, 12) == []


def test_a_run_whose_checkpoints_are_all_damaged_is_not_started_again(undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    for folder in (run / "checkpoints").glob("step-*"):
        (folder / "trainer.json").unlink()
    before = contents(run)
    with pytest.raises(DataError, match="no usable checkpoint"):
        resume_run(run, device="cpu")
    assert contents(run) == before


def test_going_on_from_an_earlier_step_ends_in_the_same_weights(undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    assert resume_run(run, start_from="4", device="cpu")["steps"] == 12
    assert differences(run, undisturbed, 12) == []


def test_an_unknown_step_is_refused_with_those_there_are(undisturbed):
    with pytest.raises(UsageError) as caught:
        resume_run(undisturbed, start_from="7", device="cpu")
    assert "4, 5, 8, 10, 12" in caught.value.hint


def scripted_evaluations(monkeypatch, losses):
    def evaluate(self, model, context):
        step = int(self._steps_done(model))
        return {"loss": losses[step - 1], "perplexity": 1.0, "bits_per_byte": 1.0}

    counts = {}

    def steps_done(self, model):
        counts["n"] = counts.get("n", 0) + 1
        return counts["n"]

    monkeypatch.setattr(language_model.LanguageModelTask, "evaluate", evaluate)
    monkeypatch.setattr(language_model.LanguageModelTask, "_steps_done", steps_done, raising=False)


@pytest.mark.parametrize("break_after", [None, 4])
def test_patience_counts_on_over_a_resume(tiny_recipe, tmp_path, monkeypatch, break_after):
    scripted_evaluations(monkeypatch, [3.0, 2.5, 2.6, 2.7, 2.8, 2.9, 3.0])
    recipe = tiny_recipe("evaluation.every=1", "evaluation.patience=3", "checkpoint.keep_last=1", "batch.num_workers=0")
    stop = StopRequests()
    with monkeypatch.context() as patch:
        if break_after:
            stop_after(break_after, language_model.LanguageModelTask, patch, stop)
        # The stop is seen at the end of its step, before that step's evaluation: one more is asked for by the context.
        patch.setattr(language_model.LanguageModelTask, "stop", None, raising=False)
        result = train(recipe, tmp_path / "run", device="cpu", stop=stop)
    if break_after:
        assert result["stopped_because"] == "preempted"
        result = resume_run(tmp_path / "run", device="cpu")
    assert result["stopped_because"] == "patience"
    assert result["steps"] == 5
    assert result["best"] == {"metric": "loss", "value": 2.5, "step": 2}
    assert (tmp_path / "run" / "checkpoints" / "best").resolve().name == "step-00000002"
    assert resume_run(tmp_path / "run", device="cpu")["stopped_because"] == "already finished"


def test_a_nan_evaluation_is_no_gain(tiny_recipe, tmp_path, monkeypatch):
    scripted_evaluations(monkeypatch, [3.0, math.nan, 2.9] + [2.8] * 9)
    result = train(tiny_recipe("evaluation.every=1"), tmp_path / "run", device="cpu")
    assert result["best"]["step"] == 4
    records = (tmp_path / "run" / "evaluations.jsonl").read_text()
    assert "NaN" not in records and '"loss": null' in records


def test_a_run_that_diverges_stops_with_its_last_good_checkpoint(tiny_recipe, tmp_path):
    recipe = tiny_recipe("optimizer.lr=1e30", "optimizer.min_lr=1e29", "checkpoint.every=1", "checkpoint.keep_last=20")
    with pytest.raises(DivergedError, match=r"step \d+.*loss.*learning rate.*samples") as caught:
        train(recipe, tmp_path / "run", device="cpu")
    assert caught.value.exit_code == 7
    checkpoints = sorted((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert checkpoints
    for checkpoint in checkpoints:
        loaded = load_checkpoint(checkpoint)
        assert all(torch.isfinite(tensor).all() for tensor in [*loaded.model.values(), *loaded.optimizer.values()])
    for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} in metrics.jsonl"))


def test_overflows_under_fp16_are_skipped_and_counted(tiny_recipe, tmp_path):
    recipe = tiny_recipe("run.precision='fp16'", "run.force_precision=true", "run.initial_loss_scale=1.099511627776e12")
    result = train(recipe, tmp_path / "run", device="cpu")
    trainer = load_checkpoint(result["checkpoint"]).trainer
    skipped = [e for e in records_without_timing(tmp_path / "run" / "events.jsonl") if e["event"] == "skipped update"]
    assert trainer["guard"]["nonfinite"] == len(skipped) > 0
    assert trainer["guard"]["applied"] + len(skipped) == 12
    assert trainer["loss_scale"]["scale"] == 2.0 ** (40 - len(skipped))
    assert math.isfinite(result["final_loss"])


def test_low_precision_on_a_cpu_is_recorded_as_what_it_is(tiny_recipe, tmp_path):
    train(tiny_recipe("run.precision='bf16'", "run.max_steps=3"), tmp_path / "run", device="cpu")
    assert RunFolder(tmp_path / "run").manifest.record["precision"] == {"asked": "bf16", "effective": "fp32"}


def test_the_record_names_what_the_run_was_made_from(undisturbed, byte_corpus):
    manifest = RunFolder(undisturbed).manifest
    assert manifest.record["corpus_digest"] == Manifest.read(byte_corpus).digest == manifest.parents[0].digest
    assert manifest.record["model"]["parameters"] == sum(manifest.record["model"]["parameter_buckets"].values())
    # 257 x 16 embedding; a block: 4 x 16 x 16 attention, 3 x 16 x 64 feed-forward, 2 x 16 norms; a last norm of 16.
    assert manifest.record["model"]["parameters"] == 257 * 16 + 2 * (4 * 256 + 3 * 16 * 64 + 32) + 16
    checkpoint = load_checkpoint(undisturbed / "checkpoints" / "latest")
    assert checkpoint.parents[0].digest == manifest.digest


def test_a_place_that_is_taken_is_left_alone(undisturbed, tiny_recipe):
    before = contents(undisturbed)
    with pytest.raises(PlaceTakenError):
        train(tiny_recipe(), undisturbed, device="cpu")
    assert contents(undisturbed) == before


def test_one_process_holds_a_run_at_a_time(undisturbed):
    with RunFolder(undisturbed).held(), pytest.raises(PlaceTakenError, match="in use"):
        resume_run(undisturbed, device="cpu")


@pytest.mark.parametrize(
    ("settings", "numbers"),
    [
        (("batch.seq_len=4096",), ["0 windows", "4096"]),
        (("batch.batch_size=4000", "batch.micro_batch_size=4000"), ["4000"]),
        (("model.vocab_size=512",), ["512", "257"]),
    ],
)
def test_a_recipe_that_does_not_go_with_its_corpus_is_refused_with_the_numbers(
    tiny_recipe, tmp_path, settings, numbers
):
    with pytest.raises(RecipeError) as caught:
        train(tiny_recipe(*settings), tmp_path / "run", device="cpu")
    assert all(number in caught.value.message for number in numbers)
    assert not (tmp_path / "run").exists()


def test_an_evaluation_without_a_validation_split_is_refused(tiny_recipe, tmp_path):
    corpus = write_byte_corpus(tmp_path / "corpus", {"train": made_up_documents(24, seed=1)})
    with pytest.raises(RecipeError, match="no validation split"):
        train(tiny_recipe(f"corpus.path={str(corpus)!r}", "evaluation.every=2"), tmp_path / "run", device="cpu")


def test_a_token_outside_the_vocabulary_is_named_with_shard_and_offset(tiny_recipe, tmp_path, byte_corpus):
    corpus = tmp_path / "corpus"
    shutil.copytree(byte_corpus, corpus)
    shard = corpus / "train-00000.bin"
    data = bytearray(shard.read_bytes())
    data[400:402] = b"\xff\xff"
    shard.write_bytes(bytes(data))
    with pytest.raises(DataError, match=r"train-00000\.bin.*offset 200.*65535.*257"):
        train(tiny_recipe(f"corpus.path={str(corpus)!r}"), tmp_path / "run", device="cpu")


def test_a_warm_start_begins_with_the_other_runs_weights(undisturbed, tiny_recipe, tmp_path):
    source = load_checkpoint(undisturbed / "checkpoints" / "latest")
    stop = StopRequests()
    recipe = tiny_recipe(f"run.warm_start={str(undisturbed)!r}", "optimizer.lr=1e-30", "optimizer.min_lr=1e-31")
    stop.request("one step is enough")
    result = train(recipe, tmp_path / "run", device="cpu", stop=stop)
    loaded = load_checkpoint(result["checkpoint"])
    for name, tensor in source.model.items():
        torch.testing.assert_close(loaded.model[name], tensor, rtol=1e-6, atol=0)
    parents = {parent.describes: parent.digest for parent in RunFolder(tmp_path / "run").manifest.parents}
    assert parents["checkpoint"] == source.digest


def test_a_warm_start_from_another_models_weights_is_refused(undisturbed, tiny_recipe, tmp_path):
    recipe = tiny_recipe(f"run.warm_start={str(undisturbed)!r}", "model.n_layers=3")
    with pytest.raises(DataError, match=r"blocks\.2"):
        train(recipe, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_keeping_one_checkpoint_keeps_the_newest_and_the_best(tiny_recipe, tmp_path, monkeypatch):
    scripted_evaluations(monkeypatch, [3.0, 2.0] + [2.5] * 10)
    train(
        tiny_recipe("evaluation.every=1", "checkpoint.every=1", "checkpoint.keep_last=1"), tmp_path / "r", device="cpu"
    )
    kept = sorted(path.name for path in (tmp_path / "r" / "checkpoints").glob("step-*"))
    assert kept == ["step-00000002", "step-00000012"]
    listed = [entry["path"] for entry in RunFolder(tmp_path / "r").manifest.state["checkpoints"]]
    assert listed == [f"checkpoints/{name}" for name in kept]


def test_deterministic_kernels_are_asked_for_and_recorded(tiny_recipe, tmp_path):
    train(tiny_recipe("run.deterministic=true", "run.max_steps=3"), tmp_path / "run", device="cpu")
    determinism = RunFolder(tmp_path / "run").manifest.record["environment"]["determinism"]
    assert determinism["asked"] and determinism["obtained"]
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize(("n_bytes", "windows"), [(32, 1), (33, 1), (63, 1), (64, 2)])
def test_windows_are_as_many_as_fit_with_a_label_for_every_position(tiny_recipe, tmp_path, n_bytes, windows):
    corpus = write_byte_corpus(tmp_path / "corpus", {"train": ["x" * n_bytes]})
    recipe = tiny_recipe(f"corpus.path={str(corpus)!r}", "batch.batch_size=1", "batch.micro_batch_size=1")
    task = language_model.LanguageModelTask(recipe, open_corpus(corpus))
    assert task.n_windows == windows  # CASES C07: floor((bytes + 1 - 1) / 32)
    last = task.fetch(np.array([windows - 1]))
    assert last["labels"].shape == (1, 32)
    assert int(last["labels"][0, -1]) == (256 if n_bytes in (32, 64) else ord("x"))


def test_masked_documents_do_not_see_each_other(tiny_recipe, tmp_path):
    first, second = "the dog sees the bird", "a cat"
    losses = []
    for other in (first, "xxx xxx xxxx xxx xxxx"):
        corpus = write_byte_corpus(tmp_path / f"corpus-{len(losses)}", {"train": [other, second, "and then stops"]})
        recipe = tiny_recipe(
            f"corpus.path={str(corpus)!r}",
            "batch.batch_size=1",
            "batch.micro_batch_size=1",
            "batch.mask_documents=true",
        )
        task = language_model.LanguageModelTask(recipe, open_corpus(corpus))
        batch = task.fetch(np.array([0]))
        model = task.build_model().eval()
        states = model(batch["tokens"], attention=task._attention(batch["tokens"]))
        losses.append(states[0, len(first) + 1 : len(first) + 1 + len(second)].detach())
    torch.testing.assert_close(losses[0], losses[1])


def test_a_checkpoint_that_a_kill_kept_out_of_the_manifest_is_listed_by_the_next_resume(undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    RunFolder(run).drop_checkpoint(run / "checkpoints" / "step-00000012")
    resume_run(run, overrides=["run.max_steps=13"], device="cpu")
    listed = [entry["path"] for entry in RunFolder(run).manifest.state["checkpoints"]]
    assert "checkpoints/step-00000012" in listed
    assert verify(run).ok


def test_links_and_manifest_are_put_right_after_a_kill_behind_the_last_rename(undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run, symlinks=True)
    RunFolder(run).drop_checkpoint(run / "checkpoints" / "step-00000012")
    RunFolder(run).close(final=False)
    RunFolder(run).drop_checkpoint(run / "checkpoints" / "step-00000012")
    for link in ("latest", "best"):
        (run / "checkpoints" / link).unlink()
        (run / "checkpoints" / link).symlink_to("step-00000010")
    assert resume_run(run, device="cpu")["stopped_because"] == "already finished"
    assert {(run / "checkpoints" / link).resolve().name for link in ("latest", "best")} == {"step-00000012"}
    assert verify(run).ok
    assert RunFolder(run).manifest.state["final"]

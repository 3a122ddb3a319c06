"""One run on one, two and four ranks, started in every way that there is."""

import json
import signal
import socket
import subprocess
import sys

import pytest

from strata_cli import main
from strata_core.training.stop import SIGNALS
from tests.drills.forking import differences
from tests.e2e.launching import ONE_THREAD, ROOT, outcome_of, run_command, strata, write_recipe

STEPS = 6
SETTINGS = {
    "run__max_steps": STEPS,
    "checkpoint__every": 2,
    "checkpoint__keep_last": 9,
    "evaluation__every": 4,
    "distributed__exact_reduction": True,
}


@pytest.fixture(scope="module")
def recipe(byte_corpus, tmp_path_factory):
    """A recipe whose result does not depend on the ranks to the last bit."""
    return write_recipe(tmp_path_factory.mktemp("launch"), byte_corpus, **SETTINGS)


@pytest.fixture(scope="module")
def alone(recipe):
    """The recipe trained in one process."""
    run = recipe.with_name("alone")
    assert strata("train-lm", "--recipe", recipe, "--out", run, "--device=cpu").returncode == 0
    return run


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def different(run, reference):
    return [name for name in differences(run, reference, STEPS) if not name.endswith("manifest.json")]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return outcome_of("same_on_ranks", tmp_path_factory.mktemp("ranks"))


def test_any_ranks_and_accumulation_train_on_the_same_windows_with_the_same_losses(comparison):
    assert set(comparison["rounding"]) == {"1 x 2", "4 x 2", "1 x 4", "4 x 4"}
    for case, found in comparison["rounding"].items():
        assert set(found["codes"]) == {0}, case
        assert found["same_windows"], case
        assert found["largest_error"] < 1e-6, case


def test_exact_reduction_gives_the_same_bits_on_1_2_and_4_ranks_and_when_they_change_over_kills(comparison):
    assert comparison["exact"] == {"exact-2": [], "exact-4": [], "changing": []}


def test_windows_that_ranks_cannot_share_evenly_are_all_used_once_an_epoch(comparison):
    few = comparison["few windows"]
    assert set(few["codes"]) == {0}
    assert few["different"] == []
    assert few["epochs"] == [list(range(13))] * 3


def test_two_ranks_of_the_command_answer_as_one_process_does(recipe, alone):
    run = recipe.with_name("two ranks")
    result = strata("train-lm", "--recipe", recipe, "--out", run, "--nproc", "2", "--device=cpu", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["steps"], answer["stopped_because"], answer["run_dir"]) == (STEPS, "finished", str(run))
    assert different(run, alone) == []
    assert result.stderr.count("step 1/6") == 1
    assert "ranks 2" in (run / "logs" / "rank-1.log").read_text()


def test_torchrun_starts_ranks_too(recipe, alone):
    run = recipe.with_name("torchrun")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port", str(free_port())]
    result = run_command([*launcher, "-m", "strata", "train-lm", "--recipe", recipe, "--out", run, "--device=cpu"])
    assert result.returncode == 0, result.stderr
    assert different(run, alone) == []


def test_tasks_of_a_slurm_step_find_each_other(recipe, alone):
    run = recipe.with_name("slurm")
    step = {
        "SLURM_JOB_ID": str(free_port()),
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_STEP_TASKS_PER_NODE": "2",
        "SLURM_NODEID": "0",
    }
    command = [sys.executable, "-m", "strata", "train-lm", "--recipe", recipe, "--out", run, "--device=cpu"]
    tasks = [
        subprocess.Popen(command, cwd=ROOT, env={**ONE_THREAD, **step, "SLURM_PROCID": rank, "SLURM_LOCALID": rank})
        for rank in ("0", "1")
    ]
    assert [task.wait(120) for task in tasks] == [0, 0]
    assert different(run, alone) == []


@pytest.mark.slow
@pytest.mark.parametrize("launchers", [1, 2])
def test_four_ranks_answer_as_one_process_does_under_one_launcher_or_two(byte_corpus, tmp_path, launchers):
    recipe = write_recipe(tmp_path, byte_corpus, **SETTINGS, batch__batch_size=8)
    assert strata("train-lm", "--recipe", recipe, "--out", tmp_path / "one", "--device=cpu").returncode == 0
    options = ["--nproc", str(4 // launchers), "--nnodes", str(launchers)]
    if launchers > 1:
        options += ["--rdzv-endpoint", f"127.0.0.1:{free_port()}"]
    command = [sys.executable, "-m", "strata", "train-lm", "--recipe", recipe, "--out", tmp_path / "four"]
    nodes = [subprocess.Popen([*command, "--device=cpu", *options], cwd=ROOT, env=ONE_THREAD) for _ in range(launchers)]
    assert [node.wait(200) for node in nodes] == [0] * launchers
    assert different(tmp_path / "four", tmp_path / "one") == []


@pytest.fixture
def own_signals():
    """The command takes the signals that ask for a stop for good; a test gives them back."""
    before = {each: signal.getsignal(each) for each in SIGNALS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nproc", "0"], "--nproc 0"),
        (["--nproc", "three"], "--nproc three"),
        (["--nnodes", "2", "--out", "run"], "--rdzv-endpoint"),
        (["--nnodes", "0"], "--nnodes"),
        (["--nproc", "3"], "3 ranks cannot share equally"),
    ],
)
def test_a_launch_that_cannot_be_is_a_usage_error(recipe, own_signals, options, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main.run(["train-lm", "--recipe", str(recipe), "--device=cpu", *options]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

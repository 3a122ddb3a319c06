import pytest

from strata_core.errors import UsageError
from strata_core.launch.slurm import first_host, join_step, tasks_per_node

TASK = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
}


def joined(**changes: str) -> dict[str, str]:
    environment = {name: value for name, value in {**TASK, **changes}.items() if value}
    before = dict(environment)
    join_step(environment)
    return {name: value for name, value in environment.items() if before.get(name) != value}


def test_a_task_of_a_step_becomes_a_rank():
    added = joined()
    port = added.pop("MASTER_PORT")
    assert added == {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "gpu07",
    }
    assert 20000 <= int(port) < 30000


def test_all_tasks_of_a_step_meet_at_one_port_and_steps_side_by_side_at_others():
    assert joined(SLURM_PROCID="0")["MASTER_PORT"] == joined(SLURM_PROCID="2")["MASTER_PORT"]
    assert len({joined(SLURM_STEP_ID=str(step))["MASTER_PORT"] for step in range(5)}) == 5


def test_a_meeting_point_that_is_given_wins():
    added = joined(MASTER_ADDR="10.0.0.1", MASTER_PORT="29500")
    assert set(added) == {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}


@pytest.mark.parametrize(
    "changes",
    [
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"SLURM_STEP_ID": ""},
        {"SLURM_STEP_NUM_TASKS": "1"},
        {"SLURM_STEP_NUM_TASKS": "", "SLURM_NTASKS": ""},
        {"SLURM_PROCID": ""},
        {"SLURM_LOCALID": ""},
    ],
    ids=["torchrun", "batch script", "interactive step of a larger job", "no count", "no number", "no local number"],
)
def test_everything_else_is_left_alone(changes):
    assert joined(**changes) == {}


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("node7", "node7"),
        ("node7,node9", "node7"),
        ("node[01-03,7]", "node01"),
        ("node[12]", "node12"),
        ("a[9-11,20-30],b[1-2]", "a9"),
        ("rack-2-node[003-010].cluster.local", "rack-2-node003.cluster.local"),
        ("login,node[1-2]", "login"),
    ],
)
def test_the_first_host_of_a_list(nodes, host):
    assert first_host(nodes) == host


@pytest.mark.parametrize("nodes", ["", "[1-3]", "node[", "node[a-b]", "a[1-2]b[1-2]"])
def test_what_is_no_list_is_refused_with_a_way_out(nodes):
    with pytest.raises(UsageError, match="list of nodes") as caught:
        first_host(nodes)
    assert "MASTER_ADDR" in caught.value.hint


def test_the_tasks_of_each_node_from_the_short_form():
    assert tasks_per_node("4(x2),3") == [4, 4, 3]
    assert tasks_per_node("8") == [8]

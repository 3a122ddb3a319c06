"""Which process is a rank, from what is in its environment."""

import pytest

from strata_core.errors import RecipeError, UsageError
from strata_core.launch.rank_environment import explained, leave_out_parts, refuse_second_launch

TORCHRUN = {
    "RANK": "2",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "node7",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RESTART_COUNT": "0",
}


@pytest.mark.parametrize(
    "whole",
    [
        {},
        TORCHRUN,
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
        {"MASTER_ADDR": "node7", "MASTER_PORT": "29500"},
    ],
    ids=["alone", "torchrun", "torchrun of one", "by hand", "a meeting point alone"],
)
def test_a_whole_launch_and_none_are_left_as_they_are(whole):
    environment = dict(whole)
    assert leave_out_parts(environment) is None
    assert environment == whole


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"WORLD_SIZE": "4"}, "WORLD_SIZE=4 in the environment is ignored: without RANK it starts no ranks"),
        ({"RANK": "3"}, "RANK=3 in the environment is ignored: without WORLD_SIZE it starts no ranks"),
        ({"LOCAL_RANK": "1"}, "LOCAL_RANK=1 in the environment is ignored: without RANK and WORLD_SIZE"),
        ({"LOCAL_WORLD_SIZE": "many"}, "LOCAL_WORLD_SIZE=many"),
        ({"TORCHELASTIC_RESTART_COUNT": "1"}, "TORCHELASTIC_RESTART_COUNT=1"),
        ({"WORLD_SIZE": "4", "LOCAL_RANK": "1"}, "WORLD_SIZE=4, LOCAL_RANK=1 in the environment is ignored"),
    ],
)
def test_a_part_of_a_launch_is_left_out_and_named(part, named):
    environment = {**part, "MASTER_ADDR": "node7", "HOME": "/home/ann"}
    assert named in leave_out_parts(environment)
    assert environment == {"MASTER_ADDR": "node7", "HOME": "/home/ann"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"WORLD_SIZE": "four"}, "WORLD_SIZE='four' in the environment"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE='0' in the environment"),
        ({"RANK": "-1"}, "RANK='-1' in the environment"),
        ({"RANK": "4"}, "RANK=4, WORLD_SIZE=4 in the environment cannot be"),
        ({"LOCAL_RANK": "2"}, "LOCAL_RANK=2, LOCAL_WORLD_SIZE=2 in the environment cannot be"),
        ({"LOCAL_WORLD_SIZE": "5"}, "LOCAL_WORLD_SIZE=5, WORLD_SIZE=4 in the environment cannot be"),
        (
            {"MASTER_ADDR": None},
            "RANK=2, WORLD_SIZE=4 in the environment make this process one of 4 ranks, and MASTER",
        ),
        ({"MASTER_ADDR": None, "MASTER_PORT": None}, "MASTER_ADDR and MASTER_PORT are not set"),
    ],
)
def test_a_launch_that_cannot_be_is_refused_by_the_variables_names(changes, said):
    environment = {name: value for name, value in {**TORCHRUN, **changes}.items() if value is not None}
    with pytest.raises(UsageError) as caught:
        leave_out_parts(environment)
    assert said in caught.value.message
    assert "to train in this process alone: unset RANK WORLD_SIZE LOCAL_RANK" in caught.value.hint


def test_a_launcher_is_no_rank_of_another_launch():
    refuse_second_launch({"RANK": "0", "WORLD_SIZE": "1"})
    with pytest.raises(UsageError, match="RANK=2, WORLD_SIZE=4 in the environment") as caught:
        refuse_second_launch(TORCHRUN)
    assert "unset RANK WORLD_SIZE" in caught.value.hint


def test_a_refusal_of_the_ranks_says_where_they_come_from_and_how_to_be_rid_of_them():
    refusal = RecipeError("3 ranks cannot share", hint="launch 2")
    told = explained(refusal, {"RANK": "0", "WORLD_SIZE": "3"})
    assert told.message == (
        "3 ranks cannot share: RANK=0, WORLD_SIZE=3 in the environment make this process one of 3 ranks"
    )
    assert told.hint == "launch 2; to train in this process alone: unset RANK WORLD_SIZE"
    of_slurm = explained(refusal, {"RANK": "0", "WORLD_SIZE": "3", "SLURM_STEP_ID": "7", "SLURM_PROCID": "0"})
    assert "srun's SLURM_STEP_ID=7" in of_slurm.message
    assert of_slurm.hint.endswith("unset SLURM_STEP_ID")

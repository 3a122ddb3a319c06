"""A structured model trained on two ranks is the one that one rank trains, also where a rank has no role to learn."""

from tests.e2e.launching import outcome_of


def test_two_ranks_train_what_one_trains(tmp_path):
    found = outcome_of("structured_ranks", tmp_path)
    assert set(found["codes"]) == {0}
    assert found["steps"] == 8
    assert found["without_roles"] > 0 and found["with_roles"] > 0
    assert found["largest_error"] < 1e-6
    assert found["different"] == []

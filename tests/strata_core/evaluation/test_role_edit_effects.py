"""The role-edit table, worked out by hand on a few answers."""

import numpy as np
import pytest

from strata_core.evaluation.role_edit_effects import RoleEditOdds, direction, role_edit_measures, role_edit_table


def odds(original, edited, *, placebo=None, no_op=None, unrelated=None, unrelated_edited=None, moved=None):
    original = np.array(original, dtype=float)
    unrelated = original if unrelated is None else np.array(unrelated, dtype=float)
    return RoleEditOdds(
        original,
        np.array(edited, dtype=float),
        original if placebo is None else np.array(placebo, dtype=float),
        original if no_op is None else np.array(no_op, dtype=float),
        unrelated,
        unrelated if unrelated_edited is None else np.array(unrelated_edited, dtype=float),
        np.zeros(len(original)) if moved is None else np.array(moved, dtype=float),
    )


def test_direction_counts_right_wins_under_each_graph():
    # Right under both, under neither, under the original alone, under the edited alone, a tie under both.
    assert direction(odds([2, -1, 1, -1, 0], [-2, 1, 1, -1, 0])).tolist() == [1, 0, 0.5, 0.5, 0.5]


def test_an_answer_that_does_not_hang_on_the_roles_has_a_direction_of_one_half():
    same = np.random.default_rng(1).normal(size=101)
    assert direction(odds(same, same)).mean() == 0.5


def test_a_row_holds_the_means_of_its_measures():
    found = role_edit_measures(
        odds(
            [2, -1, 1, 3],
            [-2, 1, 0.5, -1],
            placebo=[2, 1, 1, 2.5],
            no_op=[2, -1, 1, 3.1],
            unrelated=[1, -1, 1, 1],
            unrelated_edited=[2, -2, -1, 1],
            moved=[0, 0.2, 0, 0.6],
        )
    )
    assert found == pytest.approx(
        {
            "direction": (1 + 0 + 0.5 + 1) / 4,
            "both": 2 / 4,
            "flip_rate": 3 / 4,
            "stability": 3 / 4,
            "unrelated_direction": (1 + 0 + 0.5 + 1) / 4,
            "placebo_flip_rate": 1 / 4,
            "no_op_flip_rate": 0,
            "effect": (4 + 2 + 0.5 + 4) / 4,
            "placebo_effect": (0 + 2 + 0 + 0.5) / 4,
            "no_op_effect": 0.1 / 4,
            "unrelated_effect": (1 + 1 + 2 + 0) / 4,
            "locality": 0.2,
        }
    )


def test_the_table_sets_the_first_arm_against_the_others_and_edits_against_placebos():
    generator = np.random.default_rng(2)
    follows = np.abs(generator.normal(2, 0.2, size=64))
    blind = generator.normal(size=64)
    table = role_edit_table({"typed": odds(follows, -follows), "untyped": odds(blind, blind)}, resamples=500)
    assert [(row["arm"], row["examples"], row["direction"]) for row in table["role_edits"]] == [
        ("typed", 64, 1.0),
        ("untyped", 64, 0.5),
    ]
    above, typed, untyped = table["role_edit_differences"]
    assert (above["of"], above["minus"], above["measure"]) == ("typed", "untyped", "direction")
    assert (above["difference"], above["low"], above["high"]) == (0.5, 0.5, 0.5)
    assert typed["measure"] == "effect" and typed["difference"] == pytest.approx(2 * follows.mean())
    assert typed["low"] > 3.5
    assert (untyped["difference"], untyped["p_value"]) == (0, 1)


def test_no_examples_are_refused():
    with pytest.raises(ValueError, match="counts of shapes"):
        role_edit_table({"typed": odds([], []), "untyped": odds([], [])})

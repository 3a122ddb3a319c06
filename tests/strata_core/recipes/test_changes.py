import pytest

from strata_core.errors import RecipeError
from strata_core.recipes import RESUMABLE_KEYS, changed_keys, check_resumable, key_names, load_recipe


@pytest.fixture
def recipe(write):
    kept = "[optimizer]\nschedule_steps = 100\n[model.graph_object_memory]\nanneal_steps = 100\n"
    return write(f'[corpus]\nsample = "python-topics"\n{kept}')


def test_changes_are_listed_with_old_and_new_value(recipe):
    old = load_recipe(recipe)
    new = load_recipe(recipe, overrides=["run.max_steps=200", "optimizer.skip_grad_norm=4.0"])
    assert sorted(changed_keys(old, new)) == [("optimizer.skip_grad_norm", None, 4.0), ("run.max_steps", 100, 200)]


def test_equal_recipes_have_no_changes(recipe):
    assert changed_keys(load_recipe(recipe), load_recipe(recipe)) == []


@pytest.mark.parametrize(
    "change",
    [
        "run.max_steps=200",
        "run.log_every=1",
        "checkpoint.every=5",
        "evaluation.every=5",
        "batch.num_workers=0",
        "memory.recompute=blocks",
    ],
)
def test_a_resume_may_change_what_cannot_alter_the_past(recipe, change):
    changes = check_resumable(load_recipe(recipe), load_recipe(recipe, overrides=[change]))
    assert [key for key, _, _ in changes] == [change.partition("=")[0]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("optimizer.lr=5e-4", "optimizer.lr: 0.0006 -> 0.0005"),
        ("batch.batch_size=32", "batch.batch_size: 16 -> 32"),
        ("run.seed=8", "run.seed: 1234 -> 8"),
        ("model.d_model=64", "model.d_model: 256 -> 64"),
        ("corpus.path=/other", "corpus.path: None -> '/other'"),
        ("run.max_steps=50", "run.max_steps: 100 -> 50: can only go up"),
    ],
)
def test_case_t07_a_resume_refuses_the_rest_with_old_and_new_value(recipe, change, told):
    with pytest.raises(RecipeError) as caught:
        check_resumable(load_recipe(recipe), load_recipe(recipe, overrides=[change]))
    assert any(problem.startswith(told) for problem in caught.value.problems)
    assert caught.value.exit_code == 2


def test_resumable_keys_are_keys():
    assert set(key_names("lm")) >= RESUMABLE_KEYS

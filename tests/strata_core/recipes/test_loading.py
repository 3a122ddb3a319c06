import os
from pathlib import Path

import pytest

from strata_core.errors import RecipeError, UsageError
from strata_core.recipes import load_any_recipe, load_recipe

MINIMAL = '[corpus]\nsample = "python-topics"\n'


def test_settings_that_a_recipe_leaves_out_have_their_documented_defaults(write):
    recipe = load_recipe(write(MINIMAL))
    assert (recipe.run.seed, recipe.run.max_steps, recipe.run.log_every) == (1234, 100, 10)
    assert (recipe.optimizer.lr, recipe.optimizer.min_lr, recipe.optimizer.warmup_steps) == (6e-4, 6e-5, 10)
    assert (recipe.optimizer.beta1, recipe.optimizer.beta2, recipe.optimizer.weight_decay) == (0.9, 0.95, 0.1)
    assert (recipe.batch.batch_size, recipe.batch.seq_len, recipe.run.precision) == (16, 512, "bf16")


def test_derived_settings_follow_from_others(write):
    recipe = load_recipe(
        write(
            MINIMAL
            + "[model]\nd_model = 256\nn_heads = 8\n[batch]\nbatch_size = 12\nseq_len = 96\n[run]\nmax_steps = 70\n"
        )
    )
    assert recipe.model.n_kv_heads == 8
    assert recipe.model.d_ff == 704  # 8/3 x 256 = 682.67, the next multiple of 64
    assert recipe.model.max_seq_len == 96
    assert recipe.batch.micro_batch_size == 12
    assert recipe.optimizer.schedule_steps == recipe.model.graph_object_memory.anneal_steps == 70


def test_a_width_whose_share_is_a_multiple_of_64_is_not_rounded_further(write):
    assert load_recipe(write(MINIMAL + "[model]\nd_model = 192\n")).model.d_ff == 512


def test_what_is_written_wins_over_what_would_follow(write):
    recipe = load_recipe(
        write(
            f"{MINIMAL}[model]\nn_kv_heads = 2\nd_ff = 100\nmax_seq_len = 4096\n"
            "[model.graph_object_memory]\nanneal_steps = 50\n[optimizer]\nschedule_steps = 500\n"
        )
    )
    assert (recipe.model.n_kv_heads, recipe.model.d_ff, recipe.model.max_seq_len) == (2, 100, 4096)
    assert (recipe.optimizer.schedule_steps, recipe.model.graph_object_memory.anneal_steps) == (500, 50)


@pytest.mark.parametrize(
    ("ratio", "steps", "warmup"), [(0.1, 200, 20), (0.25, 10, 2), (0.99, 10, 9), (0.0, 10, 0), (0.29, 100, 29)]
)
def test_a_warmup_ratio_becomes_steps(write, ratio, steps, warmup):
    text = f"{MINIMAL}[optimizer]\nwarmup_ratio = {ratio}\n[run]\nmax_steps = {steps}\n"
    optimizer = load_recipe(write(text)).optimizer
    assert (optimizer.warmup_steps, optimizer.warmup_ratio) == (warmup, None)


def test_flags_win_over_the_recipe_and_the_recipe_over_its_base(write):
    write(MINIMAL + "[run]\nseed = 1\nmax_steps = 11\nlog_every = 3\n", "base.toml")
    path = write('base = "base.toml"\n[run]\nmax_steps = 22\nlog_every = 4\n', "child.toml")
    recipe = load_recipe(path, overrides=["run.log_every=5", "run.log_every=6"])
    assert (recipe.run.seed, recipe.run.max_steps, recipe.run.log_every) == (1, 22, 6)
    assert recipe.base is None


def test_a_recipe_may_start_from_a_shipped_one(write):
    recipe = load_recipe(write('base = "lm/small"\n[run]\nseed = 5\n'))
    assert recipe.run.seed == 5
    assert recipe.model == load_recipe("lm/small").model


def test_bases_in_a_circle_are_refused(write):
    write('base = "b.toml"\n', "a.toml")
    path = write('base = "a.toml"\n', "b.toml")
    with pytest.raises(RecipeError, match="circle"):
        load_recipe(path)


def test_a_base_that_is_not_there_is_refused_at_its_line(write):
    path = write('# first\nbase = "lm/smal"\n')
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert caught.value.message.startswith(f"{path}:2: base = 'lm/smal'")
    assert "lm/small" in (caught.value.hint or "")


def test_paths_are_relative_to_the_file_they_are_written_in(write, tmp_path, monkeypatch):
    write('[corpus]\npath = "here"\n', "inner/base.toml")
    path = write('base = "inner/base.toml"\n[run]\nwarm_start = "../w"\n', "recipes/../child.toml")
    monkeypatch.chdir("/")
    recipe = load_recipe(path)
    assert recipe.corpus.path == tmp_path / "inner" / "here"
    assert recipe.run.warm_start == tmp_path.parent / "w"


def test_paths_on_the_command_line_are_relative_to_the_working_directory(write, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    recipe = load_recipe(write(MINIMAL), overrides=["corpus.path=c"])
    assert recipe.corpus.path == tmp_path / "elsewhere" / "c"


def test_a_tilde_is_the_home_folder_in_recipes_and_overrides_and_a_dollar_is_not_expanded(write, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = write('[corpus]\npath = "~/c"\n')
    assert load_recipe(path).corpus.path == tmp_path / "home" / "c"
    assert load_recipe(path, overrides=["corpus.path=~/d"]).corpus.path == tmp_path / "home" / "d"
    assert load_recipe(write('[corpus]\npath = "$HOME/c"\n')).corpus.path == tmp_path / "$HOME" / "c"


def test_an_unknown_user_after_a_tilde_is_a_usage_error(write):
    with pytest.raises(UsageError, match="no user"):
        load_recipe(write('[corpus]\npath = "~nosuchuser/x"\n'))


def test_a_path_written_later_takes_back_the_sample_it_replaces(write):
    recipe = load_recipe("quickstart", overrides=["corpus.path=/c"])
    assert (recipe.corpus.path, recipe.corpus.sample) == (Path("/c"), None)


def test_a_warmup_ratio_on_the_command_line_replaces_the_recipes_steps(write):
    path = write(MINIMAL + "[optimizer]\nwarmup_steps = 3\n")
    assert load_recipe(path, overrides=["optimizer.warmup_ratio=0.5"]).optimizer.warmup_steps == 50


def test_an_empty_override_takes_a_setting_back_to_its_default(write):
    path = write(MINIMAL + "[optimizer]\nskip_grad_norm = 4.0\n[run]\nseed = 3\n")
    recipe = load_recipe(path, overrides=["optimizer.skip_grad_norm=", "run.seed=", "model.dropout="])
    assert (recipe.optimizer.skip_grad_norm, recipe.run.seed, recipe.model.dropout) == (None, 1234, 0.0)


def test_environment_variables_are_not_settings(write, monkeypatch):
    path = write(MINIMAL)
    plain = load_recipe(path)
    for name in ("LR", "SEED", "BATCH_SIZE", "STRATA_RUN__SEED", "STRATA_OPTIMIZER__LR", "STRATA_TRIAN__LR"):
        monkeypatch.setenv(name, "9")
    monkeypatch.setenv("STRATA_SEED", "")
    (path.parent / ".env").write_text("STRATA_RUN__SEED=9\n")
    monkeypatch.chdir(path.parent)
    assert load_recipe(path) == plain


def test_a_recipe_of_another_kind_is_refused_with_the_command_it_belongs_to():
    with pytest.raises(RecipeError) as caught:
        load_recipe("corpus/python-topics", "lm")
    assert "prepare-corpus" in (caught.value.hint or "")
    assert load_any_recipe("corpus/python-topics").kind == "corpus"


@pytest.mark.parametrize("override", ["base=lm/small", "kind=corpus"])
def test_base_and_kind_cannot_be_set_on_the_command_line(write, override):
    with pytest.raises(UsageError, match="only be written in a recipe"):
        load_recipe(write(MINIMAL), overrides=[override])


def test_a_loaded_recipe_cannot_be_changed(write):
    recipe = load_recipe(write(MINIMAL))
    with pytest.raises(ValueError, match="frozen"):
        recipe.run.seed = 5  # type: ignore[misc]


def test_a_corpus_recipe_keeps_standard_input_and_makes_files_absolute(write, tmp_path):
    recipe = load_recipe(write('kind = "corpus"\n[prepare]\ninputs = ["-", "a.txt"]\n'), "corpus")
    assert [os.fspath(path) for path in recipe.prepare.inputs] == ["-", str(tmp_path / "a.txt")]


def test_an_empty_path_counts_as_none(write):
    recipe = load_recipe(write(MINIMAL + '[run]\nwarm_start = ""\n'))
    assert recipe.run.warm_start is None
    with pytest.raises(RecipeError) as caught:
        load_recipe(write('[corpus]\npath = ""\n'))
    assert "missing: one of corpus.path and corpus.sample" in caught.value.problems[0]

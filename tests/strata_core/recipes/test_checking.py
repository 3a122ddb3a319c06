import re

import pytest

from strata_core.errors import RecipeError
from strata_core.recipes import load_recipe

MINIMAL = '[corpus]\nsample = "python-topics"\n'


def problems(path, overrides=(), kind="lm"):
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, kind, overrides)
    assert caught.value.exit_code == 2
    return [line.replace(f"{path}:", "R:") for line in caught.value.problems]


def test_all_faults_are_shown_at_once_in_the_order_of_the_file_each_with_line_key_value_and_rule(write):
    path = write(
        "lr = 1e-3\n"
        "[optimiser]\n"
        "beta1 = 0.5\n"
        "[run]\n"
        "max_steps = 5\n"
        'precision = "bf17"\n'
        "seq_len = 3\n"
        "[batch]\n"
        "batch_size = 6\n"
        "micro_batch_size = 4\n"
    )
    assert problems(path, ["model.dropout=2", "checkpoint.evry=3"]) == [
        "R:1: lr = 0.001: unknown key; it belongs in [optimizer]: optimizer.lr",
        "R:2: optimiser: unknown table; did you mean [optimizer]?",
        "R:5: run.max_steps = 5: warmup_steps 10 is not below max_steps 5",
        "R:6: run.precision = 'bf17': must be 'bf16', 'fp16' or 'fp32'",
        "R:7: run.seq_len = 3: unknown key; it belongs in [batch]: batch.seq_len",
        "R:10: batch.micro_batch_size = 4: micro_batch_size 4 does not divide batch_size 6",
        "--set model.dropout=2: must be less than 1",
        "--set checkpoint.evry=3: unknown key; did you mean checkpoint.every?",
        "R: missing: one of corpus.path and corpus.sample is needed",
    ]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("optimizer.lr = 0", "greater than 0"),
        ("optimizer.lr = nan", "finite"),
        ("optimizer.lr = inf", "finite"),
        ('optimizer.lr = "1e-3"', "valid number"),
        ("optimizer.min_lr = -1.0", "greater than 0"),
        ("optimizer.weight_decay = -0.1", "greater than or equal to 0"),
        ("optimizer.beta1 = 1.0", "less than 1"),
        ("optimizer.grad_clip = -1", "greater than or equal to 0"),
        ("optimizer.skip_grad_norm = 1.0", "greater than 1"),
        ("optimizer.warmup_ratio = 1.0", "less than 1"),
        ("optimizer.warmup_steps = -1", "greater than or equal to 0"),
        ("objective.lm = -1.0", "greater than or equal to 0"),
        ("run.max_steps = 0", "greater than or equal to 1"),
        ("run.max_steps = -1", "greater than or equal to 1"),
        ("run.max_steps = 1.5", "valid integer"),
        ("run.max_steps = true", "valid integer"),
        ("run.seed = 9007199254740992", "less than or equal to 9007199254740991"),
        ("run.initial_loss_scale = 0.5", "greater than or equal to 1"),
        ("run.compile = 1", "valid boolean"),
        ("run.log_every = 0", "greater than or equal to 1"),
        ("model.dropout = 1.0", "less than 1"),
        ("model.d_model = 0", "greater than or equal to 2"),
        ("batch.seq_len = 0", "greater than or equal to 1"),
        ("batch.num_workers = -1", "greater than or equal to 0"),
        ("checkpoint.keep_last = 0", "greater than or equal to 1"),
        ('evaluation.metric = "accuracy"', "'loss', 'bits_per_byte', 'uas'"),
        ("corpus.path = 3", "valid path|path"),
        ("batch = 5", "must be a table"),
    ],
)
def test_a_value_out_of_its_range_or_type_is_refused_by_name(write, line, rule):
    key = line.partition(" ")[0]
    found = problems(write(f"{line}\ncorpus.sample = 'python-topics'\n" if not key.startswith("corpus") else line))
    assert any(re.match(rf"R:1: {re.escape(key)} = .*({rule})", problem) for problem in found), found


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ("optimizer.min_lr=1e-2", "optimizer.min_lr 0.01 is above optimizer.lr 0.0006"),
        ("optimizer.warmup_steps=100", "warmup_steps 100 is not below max_steps 100"),
        ("optimizer.schedule_steps=10", "warmup_steps 10 is not below schedule_steps 10"),
        ("model.n_heads=3", "n_heads 3 does not divide d_model 256"),
        ("model.d_model=12", "d_model 12 / n_heads 4 = 3 is odd"),
        ("model.n_kv_heads=3", "n_kv_heads 3 does not divide n_heads 4"),
        ("model.max_seq_len=511", "batch.seq_len 512 is above model.max_seq_len 511"),
        ("batch.micro_batch_size=3", "micro_batch_size 3 does not divide batch_size 16"),
        ("evaluation.patience=2", "needs evaluation.every"),
        ("distributed.use_fsdp=true", "data parallelism replicates the full state on each rank"),
        ("distributed={static_graph=true, find_unused_parameters=true}", "exclude each other"),
        ("distributed={exact_reduction=true, static_graph=true}", "exact_reduction excludes"),
        ("distributed={exact_reduction=true, find_unused_parameters=true}", "exact_reduction excludes"),
        ("optimizer={warmup_ratio=0.1, warmup_steps=3}", "exclude each other"),
        ("corpus.sample=python-topic", "samples: python-topics"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_both_values(write, settings, rule):
    (problem,) = problems(write(MINIMAL), [settings])
    assert problem.startswith("--set ")
    assert rule in problem


@pytest.mark.parametrize(("max_steps", "warmup"), [(10, 10), (5, 10)])
def test_case_t10_a_warmup_not_below_the_steps_is_refused_naming_both(write, max_steps, warmup):
    (problem,) = problems(write(MINIMAL), [f"run.max_steps={max_steps}", f"optimizer.warmup_steps={warmup}"])
    assert f"warmup_steps {warmup} is not below max_steps {max_steps}" in problem


@pytest.mark.parametrize(("max_steps", "warmup"), [(10, 0), (1, 0), (10, 2), (10, 9)])
def test_case_t10_a_warmup_below_the_steps_is_taken(write, max_steps, warmup):
    recipe = load_recipe(write(MINIMAL), overrides=[f"run.max_steps={max_steps}", f"optimizer.warmup_steps={warmup}"])
    assert recipe.optimizer.warmup_steps == warmup


@pytest.mark.parametrize(
    ("key", "remark"),
    [
        ("optimizer.learning_rate", ""),
        ("optimizer.weight_decai", "did you mean optimizer.weight_decay?"),
        ("model.batch_size", "it belongs in [batch]: batch.batch_size"),
        ("run.every", "it belongs in [evaluation] or [checkpoint]: evaluation.every or checkpoint.every"),
        ("run.ckpt_every", "it is called checkpoint.every"),
        ("batch.grad_accum", "it follows from batch.batch_size and batch.micro_batch_size"),
        ("distributed.ddp_static_graph", "it is called distributed.static_graph"),
        ("model.description", "it belongs in the top of the file: description"),
        ("modell.x", "did you mean [model]?"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest_right_one(write, key, remark):
    (problem,) = problems(write(MINIMAL), [f"{key}=1"])
    assert "unknown" in problem
    assert problem.endswith(remark)


def test_faults_in_a_base_name_the_bases_file_and_line(write):
    base = write(MINIMAL + "[run]\nmax_step = 1\n", "base.toml")
    path = write('base = "base.toml"\n', "child.toml")
    assert problems(path) == [f"{base}:4: run.max_step = 1: unknown key; did you mean run.max_steps?"]


def test_an_empty_recipe_lists_what_is_missing(write):
    path = write("")
    assert problems(path) == ["R: missing: one of corpus.path and corpus.sample is needed"]
    assert problems(path, kind="corpus") == ["R: missing: one of prepare.inputs and prepare.sample is needed"]


def test_a_corpus_recipe_names_one_source_and_one_tokenizer(write):
    path = write(
        'kind = "corpus"\n[prepare]\ninputs = ["a"]\nsample = "python-topics"\nvocab_size = 300\ntokenizer = "t.json"\n'
    )
    found = problems(path, kind="corpus")
    assert [problem.partition(": ")[0] for problem in found] == ["R:4", "R:5"]
    assert all("exclude each other" in problem for problem in found)


def test_a_long_value_is_cut_in_the_message(write):
    (problem,) = problems(write(MINIMAL + f'[run]\nprecision = "{"x" * 500}"\n'))
    assert len(problem) < 200


def test_an_unknown_kind_is_refused(write):
    assert any("kind = 'lmm'" in problem for problem in problems(write(f'kind = "lmm"\n{MINIMAL}')))


def test_a_table_that_only_an_override_has_is_a_fault_of_the_override(write):
    path = write(MINIMAL + "[run]\nmax_stepz = 1\n")
    assert problems(path, ["modle.x=1", "checkpoint.evry=3"]) == [
        "R:4: run.max_stepz = 1: unknown key; did you mean run.max_steps?",
        "--set modle.x=1: unknown table; did you mean [model]?",
        "--set checkpoint.evry=3: unknown key; did you mean checkpoint.every?",
    ]

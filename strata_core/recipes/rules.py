"""What settings must satisfy together, once each is right by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from strata_core.recipes.graph import GRAPH_WEIGHTS
from strata_core.recipes.structure_rules import STRUCTURE_RULES

if TYPE_CHECKING:
    from strata_core.recipes.corpus import CorpusRecipe
    from strata_core.recipes.graph import GraphRecipe
    from strata_core.recipes.lm import LMRecipe
    from strata_core.recipes.tables import TrainingRecipe


@dataclass(frozen=True)
class Rule:
    """A condition over several settings.

    Attributes:
        keys: the dotted keys it reads; a fault is reported at the first of them that is written somewhere.
        broken: given a recipe as validated (derived settings still None where not written) or one with all of them
            filled in, the fault in words, or None when the rule holds.
    """

    keys: tuple[str, ...]
    broken: Callable[[Any], str | None]


def _corpus_is_named(recipe: TrainingRecipe) -> str | None:
    if recipe.corpus.path or recipe.corpus.sample:
        return None
    return "missing: one of corpus.path and corpus.sample is needed"


def _sample_is_known(recipe: TrainingRecipe) -> str | None:
    return None if recipe.corpus.path else _unknown_sample(recipe.corpus.sample, recipe.kind)


def _unknown_sample(name: str | None, kind: str) -> str | None:
    if name is None:
        return None
    from strata_core.corpus.sources.samples import GRAPH_SAMPLES, SAMPLES

    known = {"lm": SAMPLES, "graph": GRAPH_SAMPLES, "corpus": (*SAMPLES, *GRAPH_SAMPLES)}[kind]
    return None if name in known else f"there is no such sample; samples: {', '.join(known)}"


def _rates_are_ordered(recipe: TrainingRecipe) -> str | None:
    low, high = recipe.optimizer.min_lr, recipe.optimizer.lr
    return f"optimizer.min_lr {low:g} is above optimizer.lr {high:g}" if low > high else None


def _warmup_ends_in_time(recipe: TrainingRecipe) -> str | None:
    optimizer, limit = recipe.optimizer, recipe.run.max_steps
    if optimizer.warmup_ratio is not None:
        return None
    if optimizer.warmup_steps >= limit:
        return f"warmup_steps {optimizer.warmup_steps} is not below max_steps {limit}"
    schedule = optimizer.schedule_steps
    if schedule is not None and optimizer.warmup_steps >= schedule:
        return f"warmup_steps {optimizer.warmup_steps} is not below schedule_steps {schedule}"
    return None


def _warmup_is_given_once(recipe: TrainingRecipe) -> str | None:
    given = recipe.optimizer.model_fields_set
    if recipe.optimizer.warmup_ratio is not None and "warmup_steps" in given:
        return "warmup_ratio and warmup_steps exclude each other"
    return None


def _micro_batches_fill_the_batch(recipe: TrainingRecipe) -> str | None:
    whole, part = recipe.batch.batch_size, recipe.batch.micro_batch_size
    if part is not None and whole % part:
        return f"micro_batch_size {part} does not divide batch_size {whole}"
    return None


def _heads_fill_the_width(recipe: LMRecipe) -> str | None:
    width, heads = recipe.model.d_model, recipe.model.n_heads
    if width % heads:
        return f"n_heads {heads} does not divide d_model {width}"
    if width // heads % 2:
        return f"d_model {width} / n_heads {heads} = {width // heads} is odd; rotary positions need pairs"
    return None


def _key_heads_divide_query_heads(recipe: LMRecipe) -> str | None:
    query, key = recipe.model.n_heads, recipe.model.n_kv_heads
    return f"n_kv_heads {key} does not divide n_heads {query}" if key is not None and query % key else None


def _windows_fit_the_model(recipe: LMRecipe) -> str | None:
    window, longest = recipe.batch.seq_len, recipe.model.max_seq_len
    if longest is not None and window > longest:
        return f"batch.seq_len {window} is above model.max_seq_len {longest}"
    return None


def _patience_can_end(recipe: TrainingRecipe) -> str | None:
    if recipe.evaluation.patience and not recipe.evaluation.every:
        return f"evaluation.patience {recipe.evaluation.patience} needs evaluation.every above 0"
    return None


def _no_fsdp(recipe: TrainingRecipe) -> str | None:
    if recipe.distributed.use_fsdp:
        return "not offered: data parallelism replicates the full state on each rank"
    return None


def _one_way_to_reduce(recipe: TrainingRecipe) -> str | None:
    asked = recipe.distributed
    if asked.static_graph and asked.find_unused_parameters:
        return "static_graph and find_unused_parameters exclude each other"
    if asked.exact_reduction and (asked.static_graph or asked.find_unused_parameters):
        return "exact_reduction excludes static_graph and find_unused_parameters: it orders the sums itself"
    return None


TRAINING_RULES = (
    Rule(("corpus.sample", "corpus.path"), _sample_is_known),
    Rule(("optimizer.min_lr", "optimizer.lr"), _rates_are_ordered),
    Rule(("optimizer.warmup_ratio", "optimizer.warmup_steps"), _warmup_is_given_once),
    Rule(
        ("optimizer.warmup_steps", "run.max_steps", "optimizer.schedule_steps", "optimizer.warmup_ratio"),
        _warmup_ends_in_time,
    ),
    Rule(("batch.micro_batch_size", "batch.batch_size"), _micro_batches_fill_the_batch),
    Rule(("evaluation.patience", "evaluation.every"), _patience_can_end),
    Rule(("distributed.use_fsdp",), _no_fsdp),
    Rule(
        ("distributed.exact_reduction", "distributed.static_graph", "distributed.find_unused_parameters"),
        _one_way_to_reduce,
    ),
)
"""The rules of every kind of training."""

LM_RULES = (
    Rule(("corpus.path", "corpus.sample"), _corpus_is_named),
    *TRAINING_RULES,
    Rule(("model.n_heads", "model.d_model"), _heads_fill_the_width),
    Rule(("model.n_kv_heads", "model.n_heads"), _key_heads_divide_query_heads),
    Rule(("batch.seq_len", "model.max_seq_len"), _windows_fit_the_model),
    *(Rule(keys, broken) for keys, broken in STRUCTURE_RULES),
)


def _gate_heads_fill_the_width(recipe: GraphRecipe) -> str | None:
    width, heads = recipe.model.d_model, recipe.model.n_heads
    if recipe.model.message != "gate" or width % heads == 0:
        return None
    return f"n_heads {heads} does not divide d_model {width}"


def _something_is_learned(recipe: GraphRecipe) -> str | None:
    if any(getattr(recipe.objective, name) for name in GRAPH_WEIGHTS):
        return None
    return "every objective has the weight 0"


def _a_margin_has_its_score(recipe: GraphRecipe) -> str | None:
    objective = recipe.objective
    if objective.pair_margin and not objective.verification:
        return f"pair_margin {objective.pair_margin:g} needs verification above 0: it compares support scores"
    return None


def _no_recomputation(recipe: GraphRecipe) -> str | None:
    if recipe.memory.recompute != "none":
        return "not offered for graphs: a smaller batch.micro_batch_size bounds what is held instead"
    return None


# A recipe for one set of real data cannot name where that lies: it is named when the training starts.
GRAPH_RULES = (
    *TRAINING_RULES,
    Rule(("model.n_heads", "model.d_model", "model.message"), _gate_heads_fill_the_width),
    Rule(tuple(f"objective.{name}" for name in GRAPH_WEIGHTS), _something_is_learned),
    Rule(("objective.pair_margin", "objective.verification"), _a_margin_has_its_score),
    Rule(("memory.recompute",), _no_recomputation),
)


def _something_is_read(recipe: CorpusRecipe) -> str | None:
    prepare = recipe.prepare
    if not prepare.inputs and prepare.sample is None:
        return "missing: one of prepare.inputs and prepare.sample is needed"
    return None


def _one_source(recipe: CorpusRecipe) -> str | None:
    prepare = recipe.prepare
    return "inputs and sample exclude each other" if prepare.inputs and prepare.sample is not None else None


def _one_tokenizer(recipe: CorpusRecipe) -> str | None:
    prepare = recipe.prepare
    if prepare.tokenizer is not None and prepare.vocab_size is not None:
        return "tokenizer and vocab_size exclude each other: a given tokenizer has its vocabulary"
    return None


CORPUS_RULES = (
    Rule(("prepare.inputs", "prepare.sample"), _something_is_read),
    Rule(("prepare.sample", "prepare.inputs"), _one_source),
    Rule(("prepare.sample",), lambda recipe: _unknown_sample(recipe.prepare.sample, "corpus")),
    Rule(("prepare.vocab_size", "prepare.tokenizer"), _one_tokenizer),
)

RULES: dict[str, tuple[Rule, ...]] = {"lm": LM_RULES, "graph": GRAPH_RULES, "corpus": CORPUS_RULES}
"""The rules of each kind of recipe."""


def broken_rules(recipe: TrainingRecipe) -> list[str]:
    """What a loaded recipe, or a variation of one, breaks, in words; empty where every rule of its kind holds."""
    faults = (rule.broken(recipe) for rule in RULES[recipe.kind])
    return [fault for fault in faults if fault is not None]

"""What the settings of a structure-supervised run must satisfy together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strata_core.recipes.lm import LMRecipe

METRIC_NEEDS = {
    "loss": ("lm",),
    "bits_per_byte": ("lm",),
    "uas": ("ud.arc",),
    "las": ("ud.arc", "ud.relation"),
    "upos": ("ud.node_type",),
    "xpos": ("ud.xpos",),
    "ufeats": ("ud.feats",),
    "alltags": ("ud.node_type", "ud.feats"),
    "lemmas": ("ud.lemma",),
    "predicate_f1": ("srl.predicate",),
    "role_f1": ("srl.role",),
    "role_f1_predicted": ("srl.predicate", "srl.role"),
    "chart": ("chart.type",),
    "tokens_f1": ("segmentation",),
    "sentences_f1": ("segmentation",),
    "words_f1": ("segmentation",),
}
"""The objectives without which a metric says nothing."""

_STRUCTURE_METRIC_TAKES = tuple(METRIC_NEEDS[name] for name in ("las", "upos", "predicate_f1", "role_f1", "chart"))
"""The objectives any of which gives "structure" something to be the mean of."""

_MIXTURE_SETTINGS = ("learned_weight", "anneal_final_learned_weight", "predicate_memory_dropout")
"""What says how the learned memory and the graph object share what is read."""


def _something_is_learned(recipe: LMRecipe) -> str | None:
    from strata_core.recipes.lm import GRAPH_OBJECT_WEIGHTS, ROLE_EDIT_WEIGHTS, STRUCTURE_WEIGHTS

    names = ("lm", "segmentation", *STRUCTURE_WEIGHTS, "graph_object.aux", *GRAPH_OBJECT_WEIGHTS, *ROLE_EDIT_WEIGHTS)
    return None if any(recipe.weight(name) for name in names) else "the weights of all objectives are 0"


def _structure_is_read(recipe: LMRecipe) -> str | None:
    from strata_core.recipes.lm import STRUCTURE_WEIGHTS

    asked = [name for name in (*STRUCTURE_WEIGHTS, "graph_object.aux") if recipe.weight(name)]
    if asked and not recipe.batch.sentences:
        return f"objective.{asked[0]} is above 0 and batch.sentences is 0: no annotated sentences are read"
    return None


def _sentences_are_in_the_batch(recipe: LMRecipe) -> str | None:
    whole, sentences = recipe.batch.batch_size, recipe.batch.sentences
    return f"batch.sentences {sentences} is above batch.batch_size {whole}" if sentences > whole else None


def _windows_fill_micro_batches(recipe: LMRecipe) -> str | None:
    batch = recipe.batch
    part = batch.micro_batch_size or batch.batch_size
    if batch.sentences > batch.batch_size or batch.batch_size % part:
        return None
    windows, micro_batches = batch.batch_size - batch.sentences, batch.batch_size // part
    if windows % micro_batches:
        return (
            f"batch_size {batch.batch_size} without sentences {batch.sentences} leaves {windows} windows, which "
            f"{micro_batches} micro-batches of {part} cannot share equally"
        )
    return None


def _segments_are_read(recipe: LMRecipe) -> str | None:
    segments = recipe.batch.segments
    if recipe.objective.segmentation and not segments:
        return "objective.segmentation is above 0 and batch.segments is 0: no raw text is read"
    if segments and not recipe.objective.segmentation:
        return f"batch.segments is {segments}, but objective.segmentation is 0, so that they serve nothing"
    return None


def _segments_fill_micro_batches(recipe: LMRecipe) -> str | None:
    batch = recipe.batch
    micro_batches = batch.batch_size // (batch.micro_batch_size or batch.batch_size)
    if micro_batches and batch.segments % micro_batches:
        return f"batch.segments {batch.segments} cannot be shared equally by {micro_batches} micro-batches"
    return None


def _windows_serve_an_objective(recipe: LMRecipe) -> str | None:
    batch = recipe.batch
    if recipe.objective.lm == 0 and batch.sentences < batch.batch_size:
        return (
            f"objective.lm is 0, so windows of text serve nothing: batch.sentences {batch.sentences} must be "
            f"batch.batch_size {batch.batch_size}"
        )
    return None


def _sentences_fit_the_model(recipe: LMRecipe) -> str | None:
    sentence, longest = recipe.batch.max_sentence_len, recipe.model.max_seq_len
    if recipe.batch.sentences and longest is not None and sentence > longest:
        return f"batch.max_sentence_len {sentence} is above model.max_seq_len {longest}"
    return None


def _memories_have_a_place(recipe: LMRecipe) -> str | None:
    layer, layers = recipe.model.memory_layer, recipe.model.n_layers
    return f"memory_layer {layer} is above n_layers {layers}" if layer is not None and layer > layers else None


def _edge_readers_divide_the_width(recipe: LMRecipe) -> str | None:
    width, memory = recipe.model.d_model, recipe.model.graph_object_memory
    if memory.enabled and width % memory.n_heads:
        return f"n_heads {memory.n_heads} does not divide d_model {width}"
    return None


def _learned_memory_is_there(recipe: LMRecipe) -> str | None:
    from strata_core.recipes.lm import ROLE_EDIT_WEIGHTS

    asked = [name for name in ROLE_EDIT_WEIGHTS if recipe.weight(name)]
    if asked and not recipe.model.predicate_memory.enabled:
        return f"objective.{asked[0]} is above 0, but model.predicate_memory.enabled is false"
    return None


def _graph_object_is_there(recipe: LMRecipe) -> str | None:
    from strata_core.recipes.lm import GRAPH_OBJECT_WEIGHTS

    memory = recipe.model.graph_object_memory
    if memory.enabled:
        return None
    asked = [f"objective.{name}" for name in ("graph_object.aux", *GRAPH_OBJECT_WEIGHTS) if recipe.weight(name)]
    if memory.intervention != "none":
        asked.append(f"model.graph_object_memory.intervention {memory.intervention!r}")
    if memory.train_alone:
        asked.append("model.graph_object_memory.train_alone")
    return f"{asked[0]} needs model.graph_object_memory.enabled = true" if asked else None


def _graph_object_holds_something(recipe: LMRecipe) -> str | None:
    if not recipe.model.graph_object_memory.enabled or recipe.model.graph_object_memory.intervention != "none":
        return None
    names = ("graph_object.aux", "graph_object.role_edit", "graph_object.role_edit_stability")
    asked = [name for name in names if recipe.weight(name)]
    if asked:
        return f"objective.{asked[0]} is above 0, but model.graph_object_memory.intervention 'none' reads nothing"
    return None


def _graph_object_is_trained(recipe: LMRecipe) -> str | None:
    from strata_core.recipes.lm import GRAPH_OBJECT_WEIGHTS, STRUCTURE_WEIGHTS

    memory = recipe.model.graph_object_memory
    if not (memory.enabled and memory.train_alone) or any(map(recipe.weight, GRAPH_OBJECT_WEIGHTS)):
        return None
    passes = any(map(recipe.weight, ("lm", *STRUCTURE_WEIGHTS, "graph_object.aux")))
    if recipe.batch.sentences and memory.intervention != "none" and passes:
        return None
    return (
        f"train_alone is true, but nothing reads graphs: batch.sentences is {recipe.batch.sentences}, intervention "
        f"{memory.intervention!r}, and no objective is over role edits of the graph object"
    )


def _both_memories_are_mixed(recipe: LMRecipe) -> str | None:
    learned, given = recipe.model.predicate_memory, recipe.model.graph_object_memory
    if learned.enabled and given.enabled:
        return None
    fields = type(given).model_fields
    asked = [name for name in _MIXTURE_SETTINGS if getattr(given, name) != fields[name].default]
    if not asked:
        return None
    lacking = "graph_object_memory" if learned.enabled else "predicate_memory"
    return (
        f"model.graph_object_memory.{asked[0]} = {getattr(given, asked[0]):g} mixes both memories, but "
        f"model.{lacking}.enabled is false"
    )


def _metric_is_learned(recipe: LMRecipe) -> str | None:
    from strata_core.recipes.lm import GRAPH_OBJECT_WEIGHTS, ROLE_EDIT_WEIGHTS

    metric = recipe.evaluation.metric
    if not recipe.evaluation.every:
        return None
    lacking = [name for name in METRIC_NEEDS.get(metric, ()) if not recipe.weight(name)]
    if lacking:
        return f"evaluation.metric {metric!r} needs objective.{lacking[0]} above 0"
    if metric == "structure" and not any(all(map(recipe.weight, names)) for names in _STRUCTURE_METRIC_TAKES):
        taken = ", ".join(" with ".join(f"objective.{name}" for name in names) for names in _STRUCTURE_METRIC_TAKES)
        return f"evaluation.metric 'structure' needs an objective over annotated sentences of which it is made: {taken}"
    edits = any(recipe.weight(name) for name in (*GRAPH_OBJECT_WEIGHTS, *ROLE_EDIT_WEIGHTS))
    if metric == "role_edit_direction" and not edits:
        return "evaluation.metric 'role_edit_direction' needs an objective over role edits"
    return None


def _edges_are_in_the_full_pass(recipe: LMRecipe) -> str | None:
    if recipe.objective.graph_object.aux and recipe.model.heads.reads == "causal":
        return "objective.graph_object.aux needs the full pass, but model.heads.reads is 'causal'"
    return None


STRUCTURE_RULES: tuple[tuple[tuple[str, ...], Callable[[LMRecipe], str | None]], ...] = (
    (("objective.lm",), _something_is_learned),
    (("batch.sentences", "objective.ud", "objective.srl", "objective.chart"), _structure_is_read),
    (("batch.sentences", "batch.batch_size"), _sentences_are_in_the_batch),
    (("batch.sentences", "batch.micro_batch_size", "batch.batch_size"), _windows_fill_micro_batches),
    (("batch.sentences", "objective.lm", "batch.batch_size"), _windows_serve_an_objective),
    (("batch.segments", "objective.segmentation"), _segments_are_read),
    (("batch.segments", "batch.micro_batch_size", "batch.batch_size"), _segments_fill_micro_batches),
    (("batch.max_sentence_len", "model.max_seq_len", "batch.sentences"), _sentences_fit_the_model),
    (("model.memory_layer", "model.n_layers"), _memories_have_a_place),
    (("model.graph_object_memory.n_heads", "model.d_model"), _edge_readers_divide_the_width),
    (("model.predicate_memory.enabled", "objective.role_edit"), _learned_memory_is_there),
    (("model.graph_object_memory.enabled", "objective.graph_object"), _graph_object_is_there),
    (("model.graph_object_memory.intervention", "objective.graph_object"), _graph_object_holds_something),
    (
        ("model.graph_object_memory.train_alone", "model.graph_object_memory.intervention", "batch.sentences"),
        _graph_object_is_trained,
    ),
    (
        (*(f"model.graph_object_memory.{name}" for name in _MIXTURE_SETTINGS), "model.predicate_memory.enabled"),
        _both_memories_are_mixed,
    ),
    (("model.heads.reads", "objective.graph_object.aux"), _edges_are_in_the_full_pass),
    (("evaluation.metric", "objective.ud", "objective.srl", "objective.chart"), _metric_is_learned),
)
"""For each rule the keys it reads, and what says how it is broken; see `rules.Rule`."""

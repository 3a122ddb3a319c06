"""Held-out role edits answered by a model, arm by arm: the graph object under each intervention, the learned memory.

Shapes: E examples, G readings, R rows, L positions, D model width, N tokens of the longest context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn

from strata_core.corpus.generators.role_edits import BALANCED_BLOCK
from strata_core.corpus.reading import Corpus
from strata_core.corpus.treebanks.role_edit_examples import EncodedRoleEdit
from strata_core.evaluation.role_edit_effects import RoleEditOdds, role_edit_measures, role_edit_table
from strata_core.models.edge_slots import Intervention
from strata_core.models.readback import graph_object_alone
from strata_core.models.structured_language_model import MemoryInput, StructuredLanguageModel
from strata_core.randomness import derive_seed
from strata_core.recipes.lm import GRAPH_OBJECT_WEIGHTS, ROLE_EDIT_WEIGHTS, LMRecipe, RoleEditObjectiveTable
from strata_core.tasks.sentence_structure.role_edits.batches import (
    Reading,
    core_overrides,
    graph_slots,
    on_device,
    pack_probes,
)
from strata_core.tasks.sentence_structure.role_edits.source import HELD_OUT, RoleEdits, held_out_role_edits
from strata_core.training.task import EvaluationContext

LEARNED = "learned"
"""The arm in which a bias on the learned memory's role scores says the roles."""

GRAPH_ARMS: tuple[Intervention, ...] = ("typed", "untyped", "random")

_ARRAYS = len(fields(RoleEditOdds))
_EXAMPLES_AT_ONCE = 32
_EVALUATED = 4 * BALANCED_BLOCK
_GRAPH_SEED = 0


def answer_role_edits(
    model: StructuredLanguageModel,
    edits: RoleEdits,
    arms: Sequence[str],
    settings: RoleEditObjectiveTable,
    context: EvaluationContext,
    *,
    limit: int,
) -> dict[str, RoleEditOdds]:
    """What the model answers to the first `limit` examples, by arm; the same on every rank.

    Args:
        model: in evaluation mode.
        edits: held-out examples.
        arms: of GRAPH_ARMS, and LEARNED.
        settings: of the bias under LEARNED.
        context: where and with whom.
        limit: most examples.

    Raises:
        EvaluationStopped: a stop was requested meanwhile.
    """
    total = min(edits.n_examples or limit, limit)
    starts = range(0, total, _EXAMPLES_AT_ONCE)
    found = context.zeros(len(arms), _ARRAYS, total)
    for index in context.my_share(len(starts)):
        start = starts[index]
        stop = min(start + _EXAMPLES_AT_ONCE, total)
        chunk = {number: edits[number] for number in range(start, stop)}
        for place, arm in enumerate(arms):
            found[place, :, start:stop] = _answers(model, chunk, arm, settings, context).to(found)
    values = context.ranks.sum(found).cpu().double().numpy()
    return {arm: RoleEditOdds(*values[place]) for place, arm in enumerate(arms)}


def measure_role_edits(
    model: nn.Module, recipe: LMRecipe, corpus: Corpus, context: EvaluationContext
) -> dict[str, float]:
    """What an evaluation during training says: direction, flip rate and stability of the first arm, and the others'
    direction, on validation examples.

    Raises:
        EvaluationStopped: a stop was requested meanwhile.
    """
    answers = _held_out_answers(model, recipe, corpus, "val", context, limit=_EVALUATED)
    if not answers:
        return {}
    measures = {arm: role_edit_measures(odds) for arm, odds in answers.items()}
    first, *others = measures
    main = {f"role_edit_{name}": measures[first][name] for name in ("direction", "flip_rate", "stability")}
    return main | {f"role_edit_direction_{arm}": measures[arm]["direction"] for arm in others}


def report_role_edits(
    model: nn.Module, recipe: LMRecipe, corpus: Corpus, split: str, context: EvaluationContext
) -> dict[str, Any]:
    """The role-edit table on a split (`role_edit_effects.role_edit_table`); nothing where it has no examples.

    Raises:
        EvaluationStopped: a stop was requested meanwhile.
    """
    answers = _held_out_answers(model, recipe, corpus, split, context, limit=HELD_OUT)
    return role_edit_table(answers) if answers else {}


def role_edit_arms(recipe: LMRecipe) -> list[str]:
    """What is asked of a recipe's model: the graph object first where an objective edits it."""
    graph: list[str] = [*GRAPH_ARMS] if any(map(recipe.weight, GRAPH_OBJECT_WEIGHTS)) else []
    return graph + ([LEARNED] if any(map(recipe.weight, ROLE_EDIT_WEIGHTS)) else [])


def _held_out_answers(
    model: nn.Module, recipe: LMRecipe, corpus: Corpus, split: str, context: EvaluationContext, *, limit: int
) -> dict[str, RoleEditOdds]:
    assert isinstance(model, StructuredLanguageModel)
    settings = recipe.objective.role_edit
    edits = held_out_role_edits(corpus, settings.source, split, recipe.model.max_seq_len)
    if edits.n_examples == 0:
        return {}
    return answer_role_edits(model, edits, role_edit_arms(recipe), settings, context, limit=limit)


def _answers(
    model: StructuredLanguageModel,
    chunk: Mapping[int, EncodedRoleEdit],
    arm: str,
    settings: RoleEditObjectiveTable,
    context: EvaluationContext,
) -> Tensor:
    """The fields of RoleEditOdds, float [fields, E]."""
    readings, edits = _readings(arm), list(chunk.values())
    probes, places = pack_probes(edits, readings)
    probes = on_device(probes, context.device)
    rows, length = probes.tokens_RL.shape
    if arm == LEARNED:
        override = core_overrides(edits, readings, places, length, settings)
        memory = MemoryInput(override=on_device(override, context.device))
    else:
        seeds = [derive_seed(_GRAPH_SEED, "random graph of a held-out role edit", number) for number in chunk]
        slots = on_device(graph_slots(edits, readings, places, seeds), context.device)
        memory = MemoryInput(slots=slots, readback=graph_object_alone(rows, context.device))
    with torch.no_grad(), context.autocast():
        states_RLD = model(probes.tokens_RL, memory=memory).states_BLD
        odds_GE = probes.odds(states_RLD, model.output_weight)
        context_EN = [probes.context_log_probabilities(states_RLD, model.output_weight, place) for place in (0, 1)]
    tokens_E = (probes.context_EN >= 0).sum(dim=1)
    movement_E = (context_EN[1] - context_EN[0]).abs().sum(dim=1) / tokens_E.clamp_min(1)
    return torch.cat((odds_GE, movement_E[None]))


def _readings(arm: str) -> list[Reading]:
    """In the order of RoleEditOdds."""
    intervention: Any = "typed" if arm == LEARNED else arm
    return [
        Reading("probe", "original", intervention),
        Reading("probe", "edited", intervention),
        Reading("probe", "placebo", intervention),
        Reading("probe", "no_op", intervention),
        Reading("unrelated", "original", intervention),
        Reading("unrelated", "edited", intervention),
    ]

"""The objectives over role edits: which probes a step reads under which graphs, and what follows for the losses.

Two kinds are read apart. Edits of the graph object are read by it alone, the learned memory's readback being off.
Edits through the learned memory bias its role scores, and no graph object is given.

Shapes: E examples, G readings, R rows, L positions, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from torch import Tensor

from strata_core.corpus.treebanks.role_edit_examples import EncodedRoleEdit
from strata_core.models.edge_slots import EdgeSlots, Intervention
from strata_core.models.predicate_memory import RoleOverride
from strata_core.models.readback import graph_object_alone
from strata_core.models.structured_language_model import MemoryInput, StructuredLanguageModel
from strata_core.objectives.graph_object import null_loss, stability_loss
from strata_core.objectives.role_edit import follow_loss, movement_loss
from strata_core.randomness import derive_seed
from strata_core.recipes.lm import GRAPH_OBJECT_WEIGHTS, ROLE_EDIT_WEIGHTS, LMRecipe
from strata_core.tasks.sentence_structure.losses import loss_name
from strata_core.tasks.sentence_structure.role_edits.batches import (
    PackedProbes,
    Probe,
    Reading,
    core_overrides,
    from_batch,
    graph_slots,
    pack_probes,
    to_batch,
)
from strata_core.tasks.sentence_structure.role_edits.source import RoleEdits, RoleEditStream
from strata_core.training.task import Batch

_GRAPH, _LEARNED = "role_edit_graph", "role_edit_learned"


class RoleEditObjectives:
    """A run's objectives over role edits.

    Args:
        recipe: the run's.
        find: finds the examples it trains on; called when they are first needed.

    Attributes:
        loss_weights: those above 0, by the losses' names; empty where a run has no such objective.
    """

    def __init__(self, recipe: LMRecipe, find: Callable[[], RoleEdits]) -> None:
        self.loss_weights: Mapping[str, float] = {
            loss_name(name): recipe.weight(name)
            for name in (*GRAPH_OBJECT_WEIGHTS, *ROLE_EDIT_WEIGHTS)
            if recipe.weight(name)
        }
        self._settings = recipe.objective.role_edit
        self._seed = recipe.run.seed
        self._find = find
        self._graph_pairs = graph_reading_pairs(self.loss_weights, recipe)
        self._graph_readings = _all_readings(self._graph_pairs)
        self._learned_pairs = learned_reading_pairs(self.loss_weights)
        self._learned_readings = _all_readings(self._learned_pairs)

    @property
    def reads_graphs(self) -> bool:
        """Whether the graph-object memory is read for them."""
        return bool(self._graph_pairs)

    @cached_property
    def edits(self) -> RoleEdits:
        """The examples."""
        return self._find()

    @cached_property
    def _stream(self) -> RoleEditStream:
        return RoleEditStream(self.edits, self._seed)

    def check(self) -> None:
        """Refuses data in which there are no role edits for the model.

        Raises:
            RecipeError, DataError: see `source.training_role_edits`.
        """
        if self.loss_weights:
            self.plan(0)

    def plan(self, step: int) -> np.ndarray:
        """The numbers of the step's examples in the order of the global batch, int64 [role_edit.batch_size].

        None where there is no objective over role edits.
        """
        if not self.loss_weights:
            return np.zeros(0, dtype=np.int64)
        size = self._settings.batch_size
        return self._stream.numbers(step * size, size)

    def worst(self) -> np.ndarray:
        """As many of the longest examples as a step has, int64."""
        return self.edits.longest(self._settings.batch_size) if self.loss_weights else self.plan(0)

    def counts(self, numbers: np.ndarray) -> dict[str, int]:
        """How many things each loss of a step is a sum over: examples, and for scope tokens of their contexts."""
        tokens = sum(len(self.edits[number].context) - 1 for number in numbers.tolist())
        return {name: tokens if name == "role_edit_scope" else len(numbers) for name in self.loss_weights}

    def fetch(self, numbers: np.ndarray) -> Batch:
        """The tensors of some examples; none give tensors without rows, so that every rank takes part in a step."""
        edits = [self.edits[number] for number in numbers.tolist()]
        seeds = [derive_seed(self._seed, "random graph of a role edit", number) for number in numbers.tolist()]
        batch: Batch = {}
        if self._graph_readings:
            batch |= pack_graph_readings(edits, self._graph_readings, seeds, _GRAPH)
        if self._learned_readings:
            probes, places = pack_probes(edits, self._learned_readings)
            length = probes.tokens_RL.shape[1]
            override = core_overrides(edits, self._learned_readings, places, length, self._settings)
            batch |= to_batch(_LEARNED, probes, override)
        return batch

    def loss_sums(self, model: StructuredLanguageModel, batch: Batch) -> dict[str, Tensor]:
        """Each objective's sum over the examples, a float32 scalar; see `objectives.role_edit` and `.graph_object`."""
        losses = {}
        if self._graph_readings:
            odds_GE = graph_odds(model, batch, _GRAPH)
            for name, pair in self._graph_pairs.items():
                original_E, edited_E = (odds_GE[self._graph_readings.index(reading)] for reading in pair)
                losses[name] = self._graph_loss(name, original_E, edited_E)
        if self._learned_readings:
            losses |= self._learned_losses(model, batch)
        return {name: losses[name].float() for name in self.loss_weights}

    def _graph_loss(self, name: str, original_E: Tensor, edited_E: Tensor) -> Tensor:
        if name == "graph_object_role_edit":
            return follow_loss(original_E, edited_E, self._settings.margin)
        if name == "graph_object_role_edit_stability":
            return stability_loss(original_E, edited_E, self._settings.margin)
        return null_loss(original_E, edited_E)

    def _learned_losses(self, model: StructuredLanguageModel, batch: Batch) -> dict[str, Tensor]:
        probes = from_batch(_LEARNED, PackedProbes, batch)
        memory = MemoryInput(override=from_batch(_LEARNED, RoleOverride, batch))
        states_RLD = model(probes.tokens_RL, memory=memory).states_BLD
        odds_GE = probes.odds(states_RLD, model.output_weight)
        losses = {}
        for name, pair in self._learned_pairs.items():
            first, second = (self._learned_readings.index(reading) for reading in pair)
            if name == "role_edit_follow":
                losses[name] = follow_loss(odds_GE[first], odds_GE[second], self._settings.margin)
            elif name == "role_edit_specificity":
                losses[name] = movement_loss(odds_GE[first], odds_GE[second])
            else:
                original_EN, edited_EN = (
                    probes.context_log_probabilities(states_RLD, model.output_weight, reading)
                    for reading in (first, second)
                )
                losses[name] = movement_loss(original_EN, edited_EN, self._settings.scope_tolerance)
        return losses


def graph_reading_pairs(names: Mapping[str, float], recipe: LMRecipe) -> dict[str, tuple[Reading, Reading]]:
    """The two readings that each objective over the graph object compares.

    What must follow or stay is read from the object as the recipe's intervention has it, so that a model trained with
    untyped or random objects is a control; the nulls have interventions of their own.
    """
    given = recipe.model.graph_object_memory.intervention
    compared: dict[str, tuple[Probe, Intervention]] = {
        "graph_object_role_edit": ("probe", given),
        "graph_object_role_edit_stability": ("unrelated", given),
        "graph_object_role_edit_untyped_null": ("probe", "untyped"),
        "graph_object_role_edit_random_null": ("probe", "random"),
    }
    return {
        name: (Reading(probe, "original", intervention), Reading(probe, "edited", intervention))
        for name, (probe, intervention) in compared.items()
        if name in names
    }


def learned_reading_pairs(names: Mapping[str, float]) -> dict[str, tuple[Reading, Reading]]:
    """The two readings that each objective over the learned memory compares."""
    original, edited, placebo = Reading("probe", "original"), Reading("probe", "edited"), Reading("probe", "placebo")
    pairs = {
        "role_edit_follow": (original, edited),
        "role_edit_specificity": (original, placebo),
        "role_edit_scope": (original, edited),
    }
    return {name: pair for name, pair in pairs.items() if name in names}


def pack_graph_readings(
    edits: Sequence[EncodedRoleEdit], readings: Sequence[Reading], seeds: Sequence[int], prefix: str
) -> Batch:
    """The tensors of probes read under graph objects, for `graph_odds`."""
    probes, places = pack_probes(edits, readings)
    return to_batch(prefix, probes, graph_slots(edits, readings, places, seeds))


def graph_odds(model: StructuredLanguageModel, batch: Batch, prefix: str) -> Tensor:
    """Odds of each reading, float [G, E], with the graph object alone read."""
    probes = from_batch(prefix, PackedProbes, batch)
    readback = graph_object_alone(len(probes.tokens_RL), probes.tokens_RL.device)
    memory = MemoryInput(slots=from_batch(prefix, EdgeSlots, batch), readback=readback)
    return probes.odds(model(probes.tokens_RL, memory=memory).states_BLD, model.output_weight)


def _all_readings(pairs: Mapping[str, tuple[Reading, Reading]]) -> list[Reading]:
    return list(dict.fromkeys(reading for pair in pairs.values() for reading in pair))

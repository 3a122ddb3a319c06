"""Role edits as tensors: each probe read under some graphs, each reading scored by the odds of its two continuations.

Shapes: E examples, G readings, R rows of tokens, L positions, S slots, C tokens of the longest continuation, N tokens
of the longest context, D model width, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from strata_core.corpus.treebanks.role_edit_examples import EncodedProbe, EncodedRoleEdit
from strata_core.corpus.treebanks.role_swap import CORE_ROLES
from strata_core.models.edge_slots import EdgeSlots, Intervention, pack_slots
from strata_core.models.predicate_memory import RoleCell, RoleOverride, memory_role, override_roles
from strata_core.objectives.next_token import IGNORED
from strata_core.objectives.role_edit import token_log_probabilities
from strata_core.recipes.lm import RoleEditObjectiveTable
from strata_core.training.task import Batch

Probe = Literal["probe", "unrelated"]
Graph = Literal["original", "edited", "placebo", "no_op"]
Packed = TypeVar("Packed", "PackedProbes", EdgeSlots, RoleOverride)


class Reading(NamedTuple):
    """Which probe of an example is read under which of its graphs.

    Attributes:
        probe: "probe" (about the edited predicate) or "unrelated".
        graph: the roles as they are, with the edited predicate's swapped, with the other one's swapped, or with the
            edited one's swapped twice.
        intervention: what the graph object holds of them; of no meaning where the roles bias the learned memory.
    """

    probe: Probe
    graph: Graph
    intervention: Intervention = "typed"


@dataclass(frozen=True)
class PackedProbes:
    """Rows to run, and where the answers stand in them.

    The two continuations of a probe share a row where they are a single token each.

    Attributes:
        tokens_RL: int64, 0 at padding.
        rows_GE2: int64, the row of each reading's two continuations, the right one under the roles as they are first.
        positions_GE2C: int64, the positions that predict the continuation's tokens.
        labels_GE2C: int64, these tokens; IGNORED beyond the last.
        context_EN: int64, what positions 0 .. N - 1 of each context predict; IGNORED beyond its end.
    """

    tokens_RL: Tensor
    rows_GE2: Tensor
    positions_GE2C: Tensor
    labels_GE2C: Tensor
    context_EN: Tensor

    def odds(self, states_RLD: Tensor, weight_VD: Tensor) -> Tensor:
        """log p(right as the roles are) - log p(right once swapped) of each reading, float [G, E], in nats."""
        chosen = states_RLD[self.rows_GE2[..., None], self.positions_GE2C]
        of_each_GE2 = token_log_probabilities(chosen, weight_VD, self.labels_GE2C).sum(dim=-1)
        return of_each_GE2[..., 0] - of_each_GE2[..., 1]

    def context_log_probabilities(self, states_RLD: Tensor, weight_VD: Tensor, reading: int) -> Tensor:
        """log p of each token of the contexts but the first, float [E, N]; 0 where IGNORED."""
        states_END = states_RLD[self.rows_GE2[reading, :, 0], : self.context_EN.shape[1]]
        return token_log_probabilities(states_END, weight_VD, self.context_EN)


class Place(NamedTuple):
    """The reading and the example that a row belongs to."""

    reading: int
    example: int


def pack_probes(edits: Sequence[EncodedRoleEdit], readings: Sequence[Reading]) -> tuple[PackedProbes, list[Place]]:
    """The rows of some readings of some examples, and whose they are.

    Rows of one reading follow each other, those of the first reading first.
    """
    rows: list[np.ndarray] = []
    places: list[Place] = []
    shape = (len(readings), len(edits), 2)
    longest = max((len(part) for edit in edits for part in _continuations(edit)), default=1)
    row_of = np.zeros(shape, dtype=np.int64)
    positions = np.zeros((*shape, longest), dtype=np.int64)
    labels = np.full((*shape, longest), IGNORED, dtype=np.int64)
    for place in np.ndindex(shape):
        reading, example, side = place
        probe: EncodedProbe = getattr(edits[example], readings[reading].probe)
        continuation = (probe.answer, probe.other)[side]
        prefix = np.concatenate((edits[example].context, probe.question))
        row = np.concatenate((prefix, continuation[:-1]))
        if side == 0 or not np.array_equal(row, rows[-1]):
            rows.append(row)
            places.append(Place(reading, example))
        row_of[place] = len(rows) - 1
        positions[place] = np.minimum(len(prefix) - 1 + np.arange(longest), len(row) - 1)
        labels[place][: len(continuation)] = continuation
    packed = PackedProbes(
        torch.from_numpy(_padded(rows, 0)),
        torch.from_numpy(row_of),
        torch.from_numpy(positions),
        torch.from_numpy(labels),
        torch.from_numpy(_padded([edit.context[1:] for edit in edits], IGNORED)),
    )
    return packed, places


def _continuations(edit: EncodedRoleEdit) -> tuple[np.ndarray, ...]:
    return edit.probe.answer, edit.probe.other, edit.unrelated.answer, edit.unrelated.other


def _padded(rows: Sequence[np.ndarray], filler: int) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows), default=1)), filler, dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded


def graph_slots(
    edits: Sequence[EncodedRoleEdit], readings: Sequence[Reading], places: Sequence[Place], seeds: Sequence[int]
) -> EdgeSlots:
    """The graph object of each row, [R, S].

    All readings of an example hold as many slots in one order, and are dealt out by the example's one seed.
    """
    return pack_slots(
        [getattr(edits[example], readings[reading].graph) for reading, example in places],
        [readings[reading].intervention for reading, _ in places],
        [seeds[example] for _, example in places],
    )


def core_overrides(
    edits: Sequence[EncodedRoleEdit],
    readings: Sequence[Reading],
    places: Sequence[Place],
    length: int,
    settings: RoleEditObjectiveTable,
) -> RoleOverride:
    """The bias that says each row's roles to the learned memory, [R, L] and [R, K, L, L].

    It gives the core roles of the example's two predicates under every graph, the original one too: a context may leave
    open who did what, and then only the bias can tell. So an edit changes the signs of a bias and never its size.
    """
    cells = []
    for row, (reading, example) in enumerate(places):
        edit = edits[example]
        edges = getattr(edit, readings[reading].graph)
        for predicate, argument, edge in edges[np.concatenate((edit.edited_slots, edit.other_slots))].tolist():
            cells.append(RoleCell(row, predicate, argument, memory_role(CORE_ROLES[edit.core_types.index(edge)])))
    return override_roles(
        cells, rows=len(places), length=length, bias_value=settings.bias_value, scope=settings.override_scope
    )


def to_batch(prefix: str, *parts: Any) -> Batch:
    """The tensors of some of this module's values under names of their own; `from_batch` undoes it."""
    return {f"{prefix}.{name}": value for part in parts for name, value in _tensors(part).items()}


def from_batch(prefix: str, kind: type[Packed], batch: Mapping[str, Tensor]) -> Packed:
    """The value of a kind whose tensors `to_batch` put into the batch."""
    return kind(**{name: batch[f"{prefix}.{name}"] for name in _names(kind)})


def on_device(value: Packed, device: torch.device) -> Packed:
    """The value with its tensors on a device."""
    return type(value)(**{name: tensor.to(device) for name, tensor in _tensors(value).items()})


def _tensors(part: Any) -> dict[str, Tensor]:
    return {name: getattr(part, name) for name in _names(type(part))}


def _names(kind: Any) -> tuple[str, ...]:
    return getattr(kind, "_fields", None) or tuple(field.name for field in dataclasses.fields(kind))

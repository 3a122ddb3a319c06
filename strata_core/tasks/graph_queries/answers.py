"""A trained graph reasoner's answers to queries, with the paths that support them and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from strata_core.corpus.graphs.batch import GraphBatch
from strata_core.corpus.graphs.example import NUMBER_MODES, Edge, Mode, Status
from strata_core.models.graphs.graph_reasoner import GraphReasoner, Selection
from strata_core.models.graphs.reasoning_batch import ReasoningBatch
from strata_core.tasks.graph_queries.batches import reasoning_arrays

_SHARE_OF_BEST = 0.5
"""A node is an answer where it is at least so likely, compared with the likeliest: training makes all answers alike."""


@dataclass(frozen=True)
class SelectedPath:
    """A path that the reasoner holds to be a supporting one.

    Attributes:
        branch: of the query, from 0.
        edges: in walking order, nodes by their number in the example's graph.
        score: how far above the threshold it is.
    """

    branch: int
    edges: tuple[Edge, ...]
    score: float


@dataclass(frozen=True)
class Reasoned:
    """What the reasoner says to one example.

    Attributes:
        status: the likeliest.
        status_probabilities: of graph_example.Status 0 to 2, after the model's own temperature.
        node_probabilities: float64, of each node of the example's graph being an answer, whatever the status.
        answers: nodes of the example's graph with their probabilities, the likeliest first; empty where the status is
            not supported, or where no nodes are asked for.
        number: for queries that ask for one, where the status is supported.
        paths: those selected among what the model's own search found, the best first.
        confidence: chance that the selected paths are the right ones, after the model's own temperature.
    """

    status: Status
    status_probabilities: tuple[float, ...]
    node_probabilities: np.ndarray
    answers: tuple[tuple[int, float], ...]
    number: int | None
    paths: tuple[SelectedPath, ...]
    confidence: float


@torch.no_grad()
def reason(model: GraphReasoner, graphs: GraphBatch) -> list[Reasoned]:
    """Answers the queries of a batch; a query of Mode.NOTHING gets a status and nothing else.

    Args:
        model: in evaluation mode.
        graphs: the examples, whose labels are not looked at.
    """
    device = model.start.device
    arrays = reasoning_arrays(graphs, inverse_edges=model.config.inverse_edges)
    tensors = {name: torch.from_numpy(np.ascontiguousarray(array)).to(device) for name, array in arrays.items()}
    batch = ReasoningBatch(**tensors)
    walk = model.walk(batch)
    selection = model.select(walk, batch, model.found(walk, batch))
    statuses = _host(torch.softmax(model.statuses(walk).float() / model.status_temperature, dim=-1))
    confidences = _host(torch.sigmoid(model.confidence(walk, selection).float() / model.confidence_temperature))
    numbers = _host(model.numbers(walk, batch).argmax(dim=-1))
    scores = _host(model.answers(walk).float())
    offsets = np.searchsorted(arrays["node_examples_M"], np.arange(batch.n_examples + 1))
    paths = _selected_paths(selection, graphs, arrays, offsets)
    reasoned = []
    for example in range(batch.n_examples):
        status, mode = Status(int(statuses[example].argmax())), Mode(int(graphs.modes[example]))
        supported = status == Status.SUPPORTED and mode != Mode.NOTHING
        shares = _shares(scores[offsets[example] : offsets[example + 1]])
        reasoned.append(
            Reasoned(
                status=status,
                status_probabilities=tuple(statuses[example].tolist()),
                node_probabilities=shares,
                answers=_answers(shares) if supported and mode in (Mode.ENTITY, Mode.COUNT) else (),
                number=int(numbers[example]) if supported and mode in NUMBER_MODES else None,
                paths=tuple(paths[example]),
                confidence=float(confidences[example]),
            )
        )
    return reasoned


def _shares(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores.astype(np.float64) - scores.max(initial=-np.inf))
    return powers / powers.sum()


def _answers(shares: np.ndarray) -> tuple[tuple[int, float], ...]:
    order = np.argsort(-shares, kind="stable")
    likely = order[shares[order] >= _SHARE_OF_BEST * shares.max(initial=0.0)]
    return tuple((int(node), float(shares[node])) for node in likely)


def _selected_paths(
    selection: Selection, graphs: GraphBatch, arrays: dict[str, np.ndarray], first_nodes: np.ndarray
) -> list[list[SelectedPath]]:
    candidates = selection.candidates
    chosen = _host(candidates.real_P & (selection.scores_P > 0))
    examples, branches = _host(selection.examples_P), _host(candidates.branches_P)
    edges, lengths, scores = _host(candidates.edges_PT), _host(candidates.lengths_P), _host(selection.scores_P)
    paths: list[list[SelectedPath]] = [[] for _ in range(len(graphs.modes))]
    for row in (row for row in np.argsort(-scores, kind="stable").tolist() if chosen[row]):
        example = int(examples[row])
        first = int(first_nodes[example])
        taken = arrays["edges_F3"][edges[row, : lengths[row]]] - np.array([first, 0, first])
        branch = int(branches[row] - graphs.branch_offsets[example])
        walked = tuple((source, relation, destination) for source, relation, destination in taken.tolist())
        paths[example].append(SelectedPath(branch, walked, float(scores[row])))
    return paths


def _host(values: Tensor) -> np.ndarray:
    return np.asarray(values.cpu().numpy())

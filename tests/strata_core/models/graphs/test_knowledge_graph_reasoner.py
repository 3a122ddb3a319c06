"""Scores over one graph: both layouts against a walk over plain Python lists, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from strata_core.errors import DataError, RecipeError
from strata_core.models.graphs.knowledge_graph_reasoner import (
    KnowledgeGraphConfig,
    KnowledgeGraphReasoner,
    Reached,
    WholeGraph,
)
from strata_core.models.initialisation import initialise
from strata_core.tasks.link_prediction.batches import Frontier, KnowledgeGraph

N_ENTITIES, N_RELATIONS = 9, 3
TRIPLES = np.array(
    [[0, 0, 1], [1, 0, 2], [1, 1, 1], [2, 1, 3], [0, 2, 3], [0, 1, 3], [3, 0, 4], [4, 2, 0], [5, 0, 6], [6, 1, 5]]
)
"""A cycle, a self-loop, two relations between the same entities, a part of its own, and entities 7 and 8 alone."""


def make_model(**settings: object) -> KnowledgeGraphReasoner:
    small = {"d_model": 8, "n_layers": 3, "message_rank": 5, "d_score": 7, "message_norm_eps": 0.5}
    config = KnowledgeGraphConfig(2 * N_RELATIONS, **small | settings)
    model = KnowledgeGraphReasoner(config)
    initialise(model, 3)
    return model.double().eval()


def whole(graph: KnowledgeGraph) -> WholeGraph:
    return WholeGraph(**{name: torch.from_numpy(array) for name, array in graph.by_cell_and_relation().items()})


def as_reached(frontier: Frontier) -> Reached:
    arriving, offsets = zip(*frontier.arrivals(), strict=True)
    return Reached(
        [len(level) for level in frontier.entities],
        [torch.from_numpy(links) for links in frontier.links],
        [torch.from_numpy(level.astype(np.int32)) for level in frontier.destinations],
        [torch.from_numpy(ends.astype(np.int32)) for ends in frontier.link_ends],
        [torch.from_numpy(links) for links in arriving],
        [torch.from_numpy(cuts) for cuts in offsets],
    )


def reached_scores(model, relation: int, starts: list[int]) -> torch.Tensor:
    """[starts, entities], from the layout of pairs."""
    frontier = KnowledgeGraph(TRIPLES, N_ENTITIES, N_RELATIONS).frontier(np.array(starts), model.config.n_layers)
    reached = as_reached(frontier)
    scores, unlisted = model.score_reached(torch.tensor([relation]), reached)
    pairs = torch.from_numpy(frontier.pairs)
    return torch.where(pairs < 0, unlisted, scores[pairs.clamp(min=0)])


def all_scores(model, relation: int, starts: list[int], triples: np.ndarray = TRIPLES) -> torch.Tensor:
    graph = whole(KnowledgeGraph(triples, N_ENTITIES, N_RELATIONS))
    return model.score_all(torch.tensor([relation]), torch.tensor(starts), graph, N_ENTITIES).T


def walked_scores(model, relation: int, start: int) -> list[float]:
    """Entity by entity and edge by edge, as the formulas of the docstrings say."""
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    normalised = lambda x: x / np.sqrt(np.mean(x**2) + 0.5)  # noqa: E731
    query = weights["queries.weight"][relation]
    boundary = np.zeros((N_ENTITIES, model.config.d_model))
    boundary[start] = weights["start.weight"] @ query
    states, sums = boundary, boundary
    for layer in range(model.config.n_layers):
        if layer:
            name = f"combine.{layer - 1}."
            states = np.stack(
                [
                    state
                    + np.maximum(
                        weights[name + "of_sums.weight"] @ (normalised(total) * weights[name + "norm.weight"])
                        + weights[name + "of_states.weight"] @ state,
                        0,
                    )
                    for state, total in zip(states, sums, strict=True)
                ]
            )
        sums = boundary.copy()
        name = f"messages.{layer}."
        for head, kind, tail in TRIPLES.tolist():
            for source, edge_kind, target in ((head, kind, tail), (tail, kind + N_RELATIONS, head)):
                met = (weights[name + "query_map.weight"] @ query) * weights[name + "relations.weight"][edge_kind]
                sums[target] += (weights[name + "out.weight"] @ met) * states[source]
    return [
        (
            weights["score.out.weight"]
            @ np.maximum(
                weights["score.of_sums.weight"] @ (normalised(total) * weights["score.norm.weight"])
                + weights["score.of_states.weight"] @ state
                + weights["score.of_query.weight"] @ query
                + weights["score.of_query.bias"],
                0,
            )
        ).item()
        for state, total in zip(states, sums, strict=True)
    ]


@pytest.mark.parametrize("relation", [0, 4])
def test_both_layouts_score_as_a_walk_over_single_edges_does(relation):
    model = make_model()
    starts = [0, 5, 7, 0]

    expected = [walked_scores(model, relation, start) for start in starts]

    np.testing.assert_allclose(all_scores(model, relation, starts).detach(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(reached_scores(model, relation, starts).detach(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("message", ["distmult", "gate"])
def test_both_layouts_have_the_same_gradients(message):
    model = make_model(message=message)
    weights = torch.randn(2, N_ENTITIES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    gradients = []
    for scores in (all_scores(model, 1, [0, 3]), reached_scores(model, 1, [0, 3])):
        model.zero_grad()
        (scores * weights).sum().backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})

    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-9, atol=1e-12, msg=name)


def test_entities_renamed_have_their_scores_under_the_new_names():
    model = make_model()
    new_names = np.array([4, 7, 0, 8, 2, 1, 3, 6, 5])
    renamed = TRIPLES.copy()
    renamed[:, [0, 2]] = new_names[TRIPLES[:, [0, 2]]]

    scores = all_scores(model, 2, [0, 6])
    of_renamed = all_scores(model, 2, new_names[[0, 6]].tolist(), renamed)

    torch.testing.assert_close(of_renamed[:, new_names], scores, rtol=1e-9, atol=1e-12)


def test_a_graph_without_edges_scores_all_but_the_start_alike():
    model = make_model()
    everywhere = all_scores(model, 0, [2], TRIPLES[:0])[0]
    frontier = KnowledgeGraph(TRIPLES[:0], N_ENTITIES, N_RELATIONS).frontier(np.array([2]), 3)
    pairs, unlisted = model.score_reached(torch.tensor([0]), as_reached(frontier))

    assert (everywhere != everywhere[0]).nonzero().flatten().tolist() == [2]
    torch.testing.assert_close(torch.stack([pairs[0], unlisted]), everywhere[[2, 0]])


def test_weights_of_messages_are_dropped_in_training_alone():
    model = make_model(message_dropout=0.5)

    still = [all_scores(model, 0, [0]) for _ in range(2)]
    torch.manual_seed(1)
    noisy = all_scores(model.train(), 0, [0])

    assert torch.equal(*still)
    assert not torch.allclose(noisy, still[0])


def test_a_config_is_built_anew_from_its_fields_and_faults_are_refused():
    config = make_model().config
    assert KnowledgeGraphConfig.from_dict(config.to_dict()) == config
    with pytest.raises(DataError, match="width"):
        KnowledgeGraphConfig.from_dict(config.to_dict() | {"width": 3})
    with pytest.raises(DataError, match="n_relations"):
        KnowledgeGraphConfig.from_dict({})
    with pytest.raises(RecipeError, match="n_heads 3"):
        KnowledgeGraphConfig(2, d_model=8, message="gate", n_heads=3)
    KnowledgeGraphConfig(2, d_model=8, message="distmult", n_heads=3)

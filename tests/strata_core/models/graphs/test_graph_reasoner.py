"""The reasoner on many graphs at once and on one at a time; what its heads can and cannot see."""

import numpy as np
import pytest
import torch

from strata_core.corpus.graphs.example import Branch, GraphExample, GraphPath, Mode, PathKind, Query, Status
from strata_core.errors import DataError, RecipeError
from strata_core.models.graphs.graph_heads import effective_number
from strata_core.models.graphs.graph_reasoner import GraphReasoner, ReasonerConfig
from strata_core.recipes.graph import GRAPH_WEIGHTS
from strata_core.tasks.graph_queries.losses import ReasoningLosses
from strata_core.tasks.registry import model_from_config
from tests.strata_core.models.graphs.helpers import batch_of, random_example, reader_of, small_reasoner

torch.set_num_threads(1)

SIZES = [(1, 0), (1, 3), (2, 0), (2, 5), (7, 12), (23, 40), (60, 80), (200, 320)]
MODES = [Mode.ENTITY, Mode.COUNT, Mode.LARGEST, Mode.SMALLEST]


@pytest.fixture(scope="module")
def awkward():
    examples = [
        random_example(number, *SIZES[number % len(SIZES)], mode=MODES[number % len(MODES)]) for number in range(16)
    ]
    examples += [random_example(100 + n, 12, 20, twin=None if n == 0 else 16) for n in range(2)]
    nothing = GraphExample("nothing", (0, 1, 0), ((0, 2, 1),), Query(Mode.NOTHING))
    return reader_of([*examples, nothing])


def sums_and_gradients(model, reader, parts):
    losses = ReasoningLosses(GRAPH_WEIGHTS, 1.0)
    model.zero_grad()
    totals = dict.fromkeys(GRAPH_WEIGHTS, 0.0)
    for part in parts:
        sums = losses.sums(model, batch_of(reader, part, relation_samples=6))
        assert tuple(sums) == GRAPH_WEIGHTS
        sum(sums.values()).backward()
        for name, value in sums.items():
            totals[name] += value.item()
    return totals, {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("settings", [{}, {"message": "distmult", "link_head": "mlp"}, {"on_policy_selection": True}])
def test_losses_and_gradients_of_a_batch_are_those_of_its_examples_one_by_one(awkward, settings):
    model = small_reasoner(**settings).double()
    # Twins are compared within a batch, so those two stay together.
    alone = [[number] for number in range(16)] + [[16, 17], [18]]
    expected, expected_gradients = sums_and_gradients(model, awkward, alone)
    backwards = list(reversed(range(19)))
    for parts in ([list(range(19))], [backwards], [backwards[:7], backwards[7:]]):
        totals, gradients = sums_and_gradients(model, awkward, parts)
        assert totals == pytest.approx(expected, rel=1e-5, abs=1e-5)
        for name, gradient in gradients.items():
            torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-5, atol=1e-5, msg=name)


def test_outputs_of_a_batch_are_those_of_its_examples_one_by_one(awkward):
    model = small_reasoner()
    order = [7, 3, 0, 12, 18, 5, 1, 9, 2]

    def outputs(examples):
        batch = batch_of(awkward, examples)
        walk = model.walk(batch)
        selection = model.select(walk, batch, model.candidates(walk, batch))
        nodes = model.node_states(batch)
        return [
            model.answers(walk),
            model.statuses(walk),
            model.support(walk),
            model.numbers(walk, batch),
            model.on_paths(walk, batch),
            selection.scores_P,
            model.alignment(walk, batch, selection),
            model.confidence(walk, selection),
            model.next_hops(walk, batch),
            nodes,
        ]

    with torch.no_grad():
        together = outputs(order)
        apart = [torch.cat(parts) for parts in zip(*(outputs([example]) for example in order), strict=True)]
    for first, second in zip(together, apart, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-5)


def chain(paths=(), *, status=Status.SUPPORTED):
    """0 -a-> 1 -b-> 2 and 0 -c-> 3; asked for a, b from 0."""
    edges = ((0, 0, 1), (1, 1, 2), (0, 2, 3))
    answers = (2,) if status == Status.SUPPORTED else ()
    query = Query(Mode.ENTITY, (Branch(0, (0, 1)),))
    return GraphExample("chain", (0,) * 4, edges, query, status, answers, paths=paths)


SUPPORTING = GraphPath(PathKind.SUPPORTING, 0, (0, 1))
OTHER = GraphPath(PathKind.COMPETING, 0, (2,))


def test_the_status_does_not_depend_on_how_many_paths_are_given():
    model = small_reasoner()
    reader = reader_of([chain((SUPPORTING,)), chain((SUPPORTING, OTHER, OTHER, OTHER)), chain(())])
    batch = batch_of(reader, [0, 1, 2])
    statuses = model.statuses(model.walk(batch))
    assert torch.equal(statuses[0], statuses[1]) and torch.equal(statuses[0], statuses[2])


def test_a_path_that_is_shorter_or_longer_than_its_query_is_encoded_as_nothing():
    model = small_reasoner()
    loop = GraphExample(
        "loop",
        (0, 0),
        ((0, 0, 1), (1, 1, 0)),
        Query(Mode.ENTITY, (Branch(0, (0, 1)),)),
        Status.SUPPORTED,
        (0,),
        paths=tuple(GraphPath(PathKind.COMPETING, 0, (0, 1, 0, 1)[:length]) for length in (1, 2, 3)),
    )
    batch = batch_of(reader_of([loop]), [0])
    walk = model.walk(batch)
    states_PD = model.select(walk, batch, model.candidates(walk, batch)).states_PD
    assert [bool(state.any()) for state in states_PD] == [False, True, False]


def test_the_search_finds_every_walk_of_the_querys_length_and_knows_the_supporting_ones():
    model = small_reasoner(on_policy_selection=True)
    edges = ((0, 0, 1), (0, 1, 1), (1, 1, 2), (1, 2, 0), (0, 3, 3))
    example = GraphExample(
        "walks",
        (0,) * 4,
        edges,
        Query(Mode.ENTITY, (Branch(0, (0, 1)),)),
        Status.SUPPORTED,
        (2,),
        paths=(GraphPath(PathKind.SUPPORTING, 0, (0, 2)), GraphPath(PathKind.COMPETING, 0, (1, 2))),
    )
    reader = reader_of([chain((SUPPORTING,)), example])
    batch = batch_of(reader, [0, 1])
    walk = model.walk(batch)
    found = model.candidates(walk, batch)
    of_second = found.real_P & (found.branches_P == 1)
    first_edge = 3
    relation = batch.edges_F3[:, 1].tolist()
    walks = {tuple(relation[edge] for edge in path) for path in found.edges_PT[of_second].tolist()}
    assert walks == {(0, 1), (0, 2), (1, 1), (1, 2)}
    supporting = found.edges_PT[found.supports_P & of_second].tolist()
    assert len(supporting) == 1 and [relation[edge] for edge in supporting[0]] == [0, 1]
    assert min(supporting[0]) >= first_edge


def test_selection_is_among_the_given_paths_unless_the_policy_says_otherwise():
    reader = reader_of([chain((SUPPORTING, OTHER))])
    batch = batch_of(reader, [0])
    given, own = small_reasoner(), small_reasoner(on_policy_selection=True, search_width=5)
    assert given.candidates(given.walk(batch), batch).edges_PT.shape[0] == 2
    found = own.candidates(own.walk(batch), batch)
    assert found.edges_PT.shape[0] == 5 and int(found.real_P.sum()) == 1


def test_confidence_teaches_nothing_but_its_own_head():
    model = small_reasoner()
    batch = batch_of(reader_of([chain((SUPPORTING, OTHER))]), [0])
    ReasoningLosses(["confidence"], 1.0).sums(model, batch)["confidence"].backward()
    learning = {name.split(".")[0] for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert learning == {"confidence_head"}


def test_a_walk_backwards_needs_inverse_edges():
    backwards = GraphExample(
        "back", (0,) * 3, ((1, 0, 0), (2, 1, 0)), Query(Mode.ENTITY, (Branch(0, (4,)),)), Status.SUPPORTED, (1,)
    )
    model = small_reasoner()
    states = model.walk(batch_of(reader_of([backwards]), [0])).states_MD
    assert states[1].any() and states[2].any() and not states[0].any()


def test_renumbering_the_nodes_renumbers_the_answers():
    model = small_reasoner()
    example = random_example(4, 9, 20)
    place = np.random.default_rng(0).permutation(9).tolist()
    moved = GraphExample(
        "moved",
        tuple(example.node_types[place.index(node)] for node in range(9)),
        tuple((place[s], r, place[d]) for s, r, d in example.edges),
        Query(Mode.ENTITY, tuple(Branch(place[b.start], b.steps) for b in example.query.branches)),
        example.status,
        tuple(place[node] for node in example.answers),
    )
    reader = reader_of([example, moved])
    with torch.no_grad():
        first, second = (model.answers(model.walk(batch_of(reader, [number]))) for number in (0, 1))
    torch.testing.assert_close(second[place], first, rtol=1e-5, atol=1e-6)


def test_the_link_scale_multiplies_the_cosine():
    batch = batch_of(reader_of([random_example(1, 9, 20)]), [0])
    with torch.no_grad():
        twice, thrice = (model.links(model.node_states(batch), batch) for model in map(small, (2.0, 3.0)))
    torch.testing.assert_close(thrice, twice * 1.5)
    assert twice.abs().max() <= 2.0 + 1e-5


def small(scale):
    return small_reasoner(link_scale=scale)


def test_the_effective_number_of_answers_is_how_many_share_the_softmax_whatever_their_scale():
    scores = torch.tensor([5.0, 5.0, -90.0, 5.0, 1.0, 1.0, -90.0])
    owners = torch.tensor([0, 0, 0, 0, 2, 2, 2])
    assert effective_number(scores, owners, 3)[[0, 2]].tolist() == pytest.approx([3.0, 2.0], rel=1e-5)
    assert torch.isfinite(effective_number(scores, owners, 3)).all()


def test_a_config_builds_the_model_again_and_an_unknown_field_is_told():
    config = ReasonerConfig(4, 2, d_model=16, n_heads=4)
    built = model_from_config({"kind": "graph-reasoner", "model": config.to_dict()})
    assert isinstance(built, GraphReasoner) and built.config == config
    with pytest.raises(DataError, match="n_wings"):
        ReasonerConfig.from_dict({"n_wings": 2})
    with pytest.raises(RecipeError, match=r"model\.link_head is 'dot'"):
        ReasonerConfig(4, 2, link_head="dot")
    with pytest.raises(RecipeError, match="does not divide"):
        ReasonerConfig(4, 2, d_model=10, n_heads=4)

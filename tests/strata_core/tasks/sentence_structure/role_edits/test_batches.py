"""Probes as tensors: the odds are those of each continuation run by itself, and graphs stand where the rows do."""

import numpy as np
import pytest
import torch

from strata_core.corpus.treebanks.role_edit_examples import EncodedProbe, EncodedRoleEdit
from strata_core.models.edge_slots import SHARED_TYPE
from strata_core.recipes.lm import RoleEditObjectiveTable
from strata_core.tasks.sentence_structure.role_edits.batches import (
    PackedProbes,
    Place,
    Reading,
    core_overrides,
    from_batch,
    graph_slots,
    pack_probes,
    to_batch,
)
from tests.strata_core.models.structured import make

ARG0, ARG1, OTHER = 2, 3, 1


def probe(question, answer, other):
    return EncodedProbe(*(np.array(part, dtype=np.int64) for part in (question, answer, other)))


def edit(answer=(7,), other=(8,)):
    """Ten tokens; a predicate at 1 with arguments at 3 and 5, one at 6 with arguments at 8 and 9, an edge between."""
    original = np.array([[1, 3, ARG0], [1, 5, ARG1], [1, 6, OTHER], [6, 8, ARG1], [6, 9, ARG0]])
    swap = {ARG0: ARG1, ARG1: ARG0}
    edited, placebo = original.copy(), original.copy()
    edited[:2, 2] = [swap[kind] for kind in original[:2, 2]]
    placebo[3:, 2] = [swap[kind] for kind in original[3:, 2]]
    return EncodedRoleEdit(
        context=np.arange(1, 11),
        original=original,
        edited=edited,
        placebo=placebo,
        no_op=original,
        edited_slots=np.array([0, 1]),
        other_slots=np.array([3, 4]),
        core_types=(ARG0, ARG1),
        probe=probe([11, 12, 13], answer, other),
        unrelated=probe([11, 14], [9], [10]),
    )


PROBES = [Reading("probe", "original"), Reading("unrelated", "edited")]


def log_probability(model, prefix, continuation):
    """One forward, one token at a time."""
    total, tokens = 0.0, list(prefix)
    for token in continuation:
        states = model(torch.tensor([tokens])).states_BLD
        total += (states[0, -1] @ model.output_weight.T).log_softmax(-1)[token].item()
        tokens.append(token)
    return total


@pytest.mark.parametrize("answers", [((7,), (8,)), ((7, 4), (8, 3, 2)), ((7,), (8, 3))])
def test_odds_are_those_of_continuations_run_token_by_token(answers):
    model = make(torch.float64).eval()
    edits = [edit(), edit(*answers)]
    packed, _ = pack_probes(edits, PROBES)
    odds = packed.odds(model(packed.tokens_RL).states_BLD, model.output_weight)
    for place, example in enumerate(edits):
        for row, asked in enumerate((example.probe, example.unrelated)):
            prefix = np.concatenate((example.context, asked.question)).tolist()
            expected = log_probability(model, prefix, asked.answer.tolist()) - log_probability(
                model, prefix, asked.other.tolist()
            )
            assert odds[row, place].item() == pytest.approx(expected, abs=1e-9)


def test_single_token_continuations_share_a_row():
    one, _ = pack_probes([edit()], PROBES)
    assert one.tokens_RL.shape == (2, 13)
    two, places = pack_probes([edit((7, 4), (8, 3))], PROBES)
    assert two.tokens_RL.shape == (3, 14)
    assert places == [Place(0, 0), Place(0, 0), Place(1, 0)]
    assert two.tokens_RL[:, 13].tolist() == [7, 8, 0]


def test_log_probabilities_of_the_context_are_those_of_its_tokens():
    model = make(torch.float64).eval()
    packed, _ = pack_probes([edit()], PROBES)
    found = packed.context_log_probabilities(model(packed.tokens_RL).states_BLD, model.output_weight, 0)
    scores = model(torch.arange(1, 11)[None]).states_BLD @ model.output_weight.T
    expected = [scores[0, place].log_softmax(-1)[place + 2].item() for place in range(9)]
    assert found[0].tolist() == pytest.approx(expected, abs=1e-9)


def test_every_reading_has_as_many_slots_in_one_order_whatever_they_hold():
    readings = [Reading("probe", graph, arm) for arm in ("typed", "untyped", "random", "none") for graph in GRAPHS]
    packed, places = pack_probes([edit(), edit((7, 4))], readings)
    slots = graph_slots([edit(), edit((7, 4))], readings, places, [3, 4])
    assert slots.type_BS.shape == (len(packed.tokens_RL), 5)
    assert slots.readable_BS.sum(dim=1).tolist() == [
        0 if readings[place.reading].intervention == "none" else 5 for place in places
    ]
    by_reading = {readings[place.reading]: row for row, place in enumerate(places) if place.example == 0}
    for graph in GRAPHS:
        typed = by_reading[Reading("probe", graph, "typed")]
        found = torch.stack((slots.source_BS[typed], slots.target_BS[typed], slots.type_BS[typed]), dim=1)
        assert found.tolist() == getattr(edit(), graph).tolist()
        untyped = by_reading[Reading("probe", graph, "untyped")]
        assert slots.type_BS[untyped].tolist() == [SHARED_TYPE] * 5
        assert torch.equal(slots.target_BS[untyped], slots.target_BS[typed])


GRAPHS = ("original", "edited")


def test_random_graphs_of_an_example_are_dealt_out_alike_before_and_after_the_edit():
    readings = [Reading("probe", graph, "random") for graph in GRAPHS]
    _, places = pack_probes([edit()], readings)
    slots = graph_slots([edit()], readings, places, [11])
    assert torch.equal(slots.target_BS[0], slots.target_BS[1])
    swapped = (slots.type_BS[0] != slots.type_BS[1]).sum().item()
    assert swapped == 2
    assert sorted(slots.target_BS[0].tolist()) == [3, 5, 6, 8, 9]


def test_a_bias_says_the_core_roles_of_both_predicates_under_every_graph():
    readings = [Reading("probe", graph) for graph in ("original", "edited", "placebo")]
    packed, places = pack_probes([edit()], readings)
    settings = RoleEditObjectiveTable(bias_value=3.0, override_scope="role_only")
    override = core_overrides([edit()], readings, places, packed.tokens_RL.shape[1], settings)
    said = {
        (row, predicate, argument): {1: "ARG0", 2: "ARG1"}[role]
        for row, role, predicate, argument in (override.role_BKLL == 3.0).nonzero().tolist()
    }
    original = {(1, 3): "ARG0", (1, 5): "ARG1", (6, 8): "ARG1", (6, 9): "ARG0"}
    edited = original | {(1, 3): "ARG1", (1, 5): "ARG0"}
    placebo = original | {(6, 8): "ARG0", (6, 9): "ARG1"}
    graphs = enumerate((original, edited, placebo))
    assert said == {(row, *pair): role for row, roles in graphs for pair, role in roles.items()}
    assert torch.equal(override.role_BKLL[:, 1], -override.role_BKLL[:, 2])
    assert not override.predicate_BL.any()


def test_the_legacy_scope_biases_the_predicates_too():
    settings = RoleEditObjectiveTable(bias_value=3.0, override_scope="legacy")
    override = core_overrides([edit()], PROBES[:1], [Place(0, 0)], 13, settings)
    assert override.predicate_BL[0].nonzero().flatten().tolist() == [1, 6]
    assert override.predicate_BL.max() == 3.0


def test_a_batch_gives_back_what_was_put_into_it():
    packed, places = pack_probes([edit(), edit((7, 4))], PROBES)
    batch = to_batch("x", packed, graph_slots([edit(), edit((7, 4))], PROBES, places, [1, 2]))
    assert all(name.startswith("x.") and isinstance(value, torch.Tensor) for name, value in batch.items())
    again = from_batch("x", PackedProbes, batch)
    assert torch.equal(again.rows_GE2, packed.rows_GE2) and torch.equal(again.labels_GE2C, packed.labels_GE2C)


def test_no_examples_give_no_rows_and_odds_with_a_gradient():
    model = make().train()
    packed, places = pack_probes([], PROBES)
    slots = graph_slots([], PROBES, places, [])
    assert packed.tokens_RL.shape == (0, 1) and slots.type_BS.shape == (0, 0)
    odds = packed.odds(model(packed.tokens_RL).states_BLD, model.output_weight)
    assert odds.shape == (2, 0)
    odds.sum().backward()
    assert model.transformer.embedding.weight.grad.abs().sum() == 0

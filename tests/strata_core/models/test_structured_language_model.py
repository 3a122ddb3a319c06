"""The whole model: its two passes, what may not matter, and what it shares with the pure language model."""

import json

import numpy as np
import pytest
import torch

from strata_core.errors import DataError, RecipeError
from strata_core.evaluation.structure_decoding import decode_roles, decode_trees
from strata_core.models import LanguageModel, StructuredConfig, StructuredLanguageModel, initialise
from strata_core.models.attention import document_ids, plan_attention
from strata_core.models.edge_slots import pack_slots
from strata_core.models.predicate_memory import RoleCell, override_roles
from strata_core.models.readback import Readback, full_strength, graph_object_alone
from strata_core.models.structure_heads import NONE_ROLE
from strata_core.models.structured_language_model import GRAPH_OBJECT_PREFIX, MemoryInput
from strata_core.objectives.structure import class_loss, role_loss
from strata_core.tasks.registry import model_from_config
from tests.strata_core.models.structured import SHAPE, config, make, some_tokens, some_words

LENGTH = 12
EDGES = [np.array([[2, 1, 1], [2, 6, 2], [8, 9, 3]]), np.array([[3, 7, 1]])]
CELLS = (RoleCell(0, 2, 1, 1), RoleCell(0, 2, 6, 2))


def memory_input(edges=EDGES, cells=CELLS, length=LENGTH):
    return MemoryInput(
        slots=pack_slots(edges, "typed", list(range(len(edges)))),
        override=override_roles(cells, rows=len(edges), length=length, bias_value=4.0, scope="legacy"),
    )


@pytest.mark.parametrize("place", [1, 6, 11])
def test_a_changed_token_leaves_every_earlier_causal_state_bit_equal(place):
    model, tokens, memory = make(), some_tokens(2, LENGTH), memory_input()
    changed = tokens.clone()
    changed[:, place] = 23 - changed[:, place]
    before, after = (model(t, memory=memory).states_BLD for t in (tokens, changed))
    assert torch.equal(before[:, :place], after[:, :place])
    assert not torch.equal(before[:, place], after[:, place])


@pytest.mark.parametrize("edge", [[8, 9, 2], [8, 11, 3], [0, 9, 3]])
def test_a_changed_arc_leaves_every_causal_state_before_it_bit_equal(edge):
    model, tokens = make(), some_tokens(2, LENGTH)
    other = [np.array([*EDGES[0][:2], edge]), EDGES[1]]
    before, after = (model(tokens, memory=memory_input(edges)).states_BLD for edges in (EDGES, other))
    assert torch.equal(before[:, :9], after[:, :9])
    assert not torch.equal(before[0, 9:], after[0, 9:])


def test_a_changed_role_leaves_every_causal_state_before_it_bit_equal():
    model, tokens = make(), some_tokens(2, LENGTH)
    other = (RoleCell(0, 2, 1, 1), RoleCell(0, 2, 6, 1))
    before = model(tokens, memory=memory_input()).states_BLD
    after = model(tokens, memory=memory_input(cells=other)).states_BLD
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.equal(before[0, 6], after[0, 6])


def test_the_end_of_a_row_changes_nothing_before_it():
    model, tokens = make(torch.float64), some_tokens(2, LENGTH)
    whole, cut = model(tokens).states_BLD, model(tokens[:, :7]).states_BLD
    torch.testing.assert_close(whole[:, :7], cut, rtol=0, atol=1e-9)


def test_a_document_mask_equals_running_the_documents_separately():
    model = make(torch.float64)
    documents = [[3, 5, 0], [7, 8, 9, 10, 0], [11, 12]]
    tokens = torch.tensor([[token for document in documents for token in document]])
    plan = plan_attention(causal=True, document_BL=document_ids(tokens, 0))
    together = model(tokens, attention=plan).states_BLD
    separately = [model(torch.tensor([document])).states_BLD for document in documents]
    torch.testing.assert_close(together, torch.cat(separately, dim=1), rtol=0, atol=1e-6)


def test_sentences_of_unequal_length_equal_the_same_ones_alone():
    model = make(torch.float64)
    edges = [np.array([[2, 1, 1]]), np.array([[0, 2, 2], [1, 2, 3]])]
    batch = model.full_pass(some_words(5, 3), memory_input(edges, cells=(), length=5))
    assert torch.isfinite(batch.states_BLD).all()
    alone = model.full_pass(some_words(5), memory_input(edges[:1], cells=(), length=5))
    torch.testing.assert_close(batch.states_BLD[:1], alone.states_BLD, rtol=0, atol=1e-9)
    longer = model.full_pass(some_words(5, 3, 9), memory_input([*edges, EDGES[1]], cells=(), length=9))
    torch.testing.assert_close(longer.states_BLD[1, :3], batch.states_BLD[1, :3], rtol=0, atol=1e-9)


def test_every_word_of_a_sentence_reads_every_other_in_the_full_pass():
    model = make()
    words = some_words(6)
    changed = words.features_BWK.clone()
    changed[0, 4, 0] = (changed[0, 4, 0] + 1) % 50
    other = type(words)(words.tokens_T, words.offsets_N, changed, words.real_BW)
    differs = model.full_pass(words).states_BLD != model.full_pass(other).states_BLD
    assert differs.any(dim=-1).all()


def test_until_its_gates_open_the_causal_pass_is_the_pure_language_model_of_the_same_seed():
    model, pure = StructuredLanguageModel(config()), LanguageModel(SHAPE)
    initialise(model, 9)
    initialise(pure, 9)
    for name, parameter in pure.named_parameters():
        assert torch.equal(parameter, model.get_parameter(name))
    tokens = some_tokens(2, LENGTH)
    assert torch.equal(model(tokens, memory=memory_input()).states_BLD, pure(tokens))


def test_a_model_without_memories_is_the_pure_language_model_and_reports_no_edges():
    model = make(predicate_memory=None, graph_object_memory=None)
    result = model(some_tokens(2, LENGTH), memory=memory_input())
    assert result.edges is None and result.slot_types_BST is None


def test_readback_factors_scale_each_memory_row_by_row():
    model, tokens = make(), some_tokens(2, LENGTH)
    given = memory_input()

    def run(readback):
        return model(tokens, memory=MemoryInput(given.slots, given.override, readback)).states_BLD

    plain = run(None)
    assert torch.equal(run(full_strength(2)), plain)
    first_row_off = run(Readback(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0])))
    assert torch.equal(first_row_off[1], plain[1])
    without = make(predicate_memory=None, graph_object_memory=None)(tokens).states_BLD
    assert torch.equal(first_row_off[0], without[0])


def test_with_the_object_alone_an_override_of_the_learned_memory_changes_nothing():
    model, tokens = make(), some_tokens(2, LENGTH)
    given = memory_input()
    alone = graph_object_alone(2)
    overridden = model(tokens, memory=MemoryInput(given.slots, given.override, alone)).states_BLD
    plain = model(tokens, memory=MemoryInput(given.slots, None, alone)).states_BLD
    assert torch.equal(overridden, plain)
    edited = pack_slots([np.array([[2, 1, 2], [2, 6, 1], [8, 9, 3]]), EDGES[1]], "typed", [0, 1])
    assert not torch.equal(model(tokens, memory=MemoryInput(edited, None, alone)).states_BLD, plain)


def test_the_graph_object_parameters_are_those_under_their_prefix():
    with_object, without = make(), make(graph_object_memory=None)
    names = {name for name, _ in with_object.named_parameters()}
    assert {name for name in names if name.startswith(GRAPH_OBJECT_PREFIX)} == names - {
        name for name, _ in without.named_parameters()
    }


def test_parameters_frozen_outside_the_prefix_are_bit_equal_after_an_update():
    model = make()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(GRAPH_OBJECT_PREFIX))
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1)
    result = model(some_tokens(2, LENGTH), memory=memory_input())
    (result.states_BLD.square().sum() + result.slot_types_BST.square().sum()).backward()
    optimizer.step()
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert changed == {name for name in before if name.startswith(GRAPH_OBJECT_PREFIX)}


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_recomputation_gives_bit_equal_gradients_wherever_the_memories_stand(layer):
    gradients = []
    for recompute in (False, True):
        model = make(memory_layer=layer)
        model.transformer.recompute = recompute
        model(some_tokens(2, LENGTH), memory=memory_input()).states_BLD.square().sum().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert all(torch.equal(gradient, gradients[1][name]) for name, gradient in gradients[0].items())
    assert gradients[0]["predicate_memory.query.weight"].abs().max() > 0


def test_a_config_that_went_through_json_builds_the_same_module():
    model = make()
    built = model_from_config(json.loads(json.dumps({"kind": "structured-lm", "model": model.config.to_dict()})))
    built.load_state_dict(model.state_dict())
    tokens = some_tokens(2, LENGTH)
    assert torch.equal(built(tokens).states_BLD, model(tokens).states_BLD)
    assert StructuredConfig.from_dict(config(predicate_memory=None).to_dict()) == config(predicate_memory=None)


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"flux": 1}, "flux"), ({"heads": {"n_roles": 3}}, "n_relations"), ({"heads": None}, "n_relations")],
)
def test_a_config_this_version_does_not_know_is_refused_by_name(changes, named):
    with pytest.raises(DataError, match=named):
        StructuredConfig.from_dict(config().to_dict() | changes)


def test_a_place_outside_the_transformer_is_refused_with_both_numbers():
    with pytest.raises(RecipeError, match=r"memory_layer = 3.*2 blocks"):
        config(memory_layer=3)


def test_a_sentence_over_max_seq_len_is_refused_with_both_numbers():
    with pytest.raises(DataError, match=r"33.*32"):
        make().full_pass(some_words(33))


def test_a_few_sentences_are_learned_by_heart_and_decoded():
    model, words = StructuredLanguageModel(config()), some_words(5, 3)
    initialise(model, 1)
    trees = torch.tensor([[2, 0, 2, 5, 3], [2, 3, 0, -1, -1]])
    relations = torch.tensor([[1, 0, 2, 3, 4], [1, 2, 0, -1, -1]])
    predicates = torch.tensor([[0, 1], [1, 2]])
    roles = torch.tensor([[1, 0, 2, 0, 0], [0, 3, 0, -1, -1]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        states = model.full_pass(words).states_BLD
        loss = class_loss(model.heads.arcs(states, words.real_BW), trees)
        loss = loss + class_loss(model.heads.relations(states, trees), relations)
        loss = loss + role_loss(model.heads.roles(states, predicates), roles, none_role=NONE_ROLE, none_weight=0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    states = model.full_pass(words).states_BLD
    decoded = decode_trees(model.heads, states, words.real_BW)
    assert [tree.heads.tolist() for tree in decoded] == [[2, 0, 2, 5, 3], [2, 3, 0]]
    assert [tree.relations.tolist() for tree in decoded] == [[1, 0, 2, 3, 4], [1, 2, 0]]
    gold_predicates = [np.array([2]), np.array([3])]
    found = decode_roles(model.heads, states, words.real_BW, gold_predicates)
    assert [part.tolist() for part in found] == [[[1, 0, 2, 0, 0]], [[0, 3, 0]]]

"""The transformer in its two passes, against a slow one and against what must not matter."""

import pytest
import torch
from torch import Tensor, nn

from strata_core.errors import DataError, RecipeError
from strata_core.models import LanguageModel, TransformerConfig, initialise
from strata_core.models.attention import document_ids, plan_attention
from strata_core.objectives.next_token import next_token_loss
from tests.strata_core.models.slow_transformer import slow_nats, slow_states

END_OF_TEXT = 0
CAUSAL, FULL = plan_attention(causal=True), plan_attention(causal=False)


def shape(**changes) -> TransformerConfig:
    values = {
        "vocab_size": 23,
        "d_model": 16,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 2,
        "d_ff": 24,
        "max_seq_len": 64,
    }
    return TransformerConfig(**(values | changes))


def make(dtype: torch.dtype = torch.float32, **changes) -> LanguageModel:
    model = LanguageModel(shape(**changes))
    initialise(model, 5)
    # Larger than first values, so that attention is far from uniform and mistakes show.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(15)
    return model.to(dtype)


def some_tokens(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(1, 23, (rows, length), generator=torch.Generator().manual_seed(seed))


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("changes", [{}, {"n_kv_heads": 4}, {"n_kv_heads": 1, "tie_embeddings": False}])
def test_states_loss_and_gradients_equal_those_of_a_slow_implementation(causal, changes):
    model = make(torch.float64, **changes)
    tokens = some_tokens(1, 7)
    labels = some_tokens(1, 7, seed=1)
    states = model(tokens, attention=plan_attention(causal=causal))
    loss = next_token_loss(states.flatten(0, 1), model.output_weight, labels.flatten(), chunk_rows=3)
    loss.backward()

    weights = {name: parameter.detach().clone().requires_grad_() for name, parameter in model.named_parameters()}
    expected = slow_states(weights, model.config, tokens[0].tolist(), lambda here, there: there <= here or not causal)
    output = weights["transformer.embedding.weight" if model.config.tie_embeddings else "output.weight"]
    expected_loss = slow_nats(expected, output, labels[0].tolist())
    expected_loss.backward()

    # Rotary angles are float32, the slow ones float64: hence not 1e-12.
    torch.testing.assert_close(states[0], expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-6, atol=0)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, weights[name].grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_a_changed_token_leaves_every_earlier_causal_state_bit_equal(masked):
    model = make()
    tokens = some_tokens(2, 33)
    plan = plan_attention(causal=True, real_BL=torch.ones_like(tokens, dtype=torch.bool)) if masked else CAUSAL
    states = model(tokens, attention=plan)
    for position in (0, 1, 16, 31, 32):
        changed = tokens.clone()
        changed[:, position] = 22 - changed[:, position]
        other = model(changed, attention=plan)
        assert torch.equal(other[:, :position], states[:, :position])
        assert not torch.equal(other[:, position], states[:, position])


def test_a_changed_token_changes_every_state_of_the_full_pass():
    model = make()
    tokens = some_tokens(1, 12)
    changed = tokens.clone()
    changed[0, 7] = 22 - changed[0, 7]
    differs = (model(tokens, attention=FULL) != model(changed, attention=FULL)).any(dim=-1)
    assert differs.all()


@pytest.mark.parametrize("causal", [True, False])
def test_padding_changes_nothing_and_stays_finite(causal):
    model = make(torch.float64)
    lengths = [3, 9, 6]
    rows = [some_tokens(1, length, seed=length) for length in lengths]
    real = torch.arange(9)[None, :] < torch.tensor(lengths)[:, None]
    batch = torch.full((3, 9), 4)
    for index, row in enumerate(rows):
        batch[index, : row.shape[1]] = row[0]
    states = model(batch, attention=plan_attention(causal=causal, real_BL=real))
    assert torch.isfinite(states).all()
    for index, row in enumerate(rows):
        alone = model(row, attention=plan_attention(causal=causal))
        torch.testing.assert_close(states[index, : row.shape[1]], alone[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
def test_padding_before_the_text_changes_nothing_once_positions_are_relative(causal):
    model = make(torch.float64)
    row = some_tokens(1, 5)
    padded = torch.cat([torch.full((1, 4), 9), row], dim=1)
    real = torch.arange(9)[None, :] >= 4
    states = model(padded, attention=plan_attention(causal=causal, real_BL=real))
    torch.testing.assert_close(states[:, 4:], model(row, attention=plan_attention(causal=causal)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("causal", [True, False])
def test_a_document_mask_equals_running_the_documents_separately(causal):
    model = make(torch.float64)
    documents = [[3, 5, END_OF_TEXT], [END_OF_TEXT], [7, 8, 9, 10, END_OF_TEXT], [11, 12]]
    tokens = torch.tensor([[token for document in documents for token in document]])
    plan = plan_attention(causal=causal, document_BL=document_ids(tokens, END_OF_TEXT))
    states = model(tokens, attention=plan)
    separately = [model(torch.tensor([document]), attention=plan_attention(causal=causal)) for document in documents]
    torch.testing.assert_close(states, torch.cat(separately, dim=1), rtol=0, atol=1e-6)


def test_a_masked_row_equals_a_slow_implementation_that_reads_only_what_it_may():
    model = make(torch.float64)
    tokens = torch.tensor([[3, 5, END_OF_TEXT, 7, 8, 1, 1]])
    real = torch.tensor([[True] * 5 + [False] * 2])
    document = [0, 0, 0, 1, 1, 1, 1]
    plan = plan_attention(causal=True, real_BL=real, document_BL=document_ids(tokens, END_OF_TEXT))
    expected = slow_states(
        dict(model.named_parameters()),
        model.config,
        tokens[0].tolist(),
        lambda here, there: there <= here and document[here] == document[there] and (there < 5 or there == here),
    )
    torch.testing.assert_close(model(tokens, attention=plan)[0], expected, rtol=1e-5, atol=1e-6)


def test_shared_key_and_value_heads_equal_copies_of_them():
    grouped = make(torch.float64, n_kv_heads=2)
    full = make(torch.float64, n_kv_heads=4)
    weights = dict(grouped.state_dict())
    for name, weight in weights.items():
        if name.endswith(("key.weight", "value.weight")):
            weights[name] = torch.cat([weight[:4], weight[:4], weight[4:], weight[4:]])
    full.load_state_dict(weights)
    tokens = some_tokens(2, 10)
    torch.testing.assert_close(grouped(tokens), full(tokens), rtol=0, atol=1e-12)


def test_positions_matter_only_by_their_differences():
    model = make(torch.float64)
    tokens = some_tokens(1, 10)
    shifted = model(tokens, positions_BL=torch.arange(10)[None] + 37)
    torch.testing.assert_close(shifted, model(tokens), rtol=0, atol=1e-4)
    stretched = model(tokens, positions_BL=2 * torch.arange(10)[None])
    assert (stretched - model(tokens)).abs().max() > 0.01


def test_embedded_states_may_be_given_in_place_of_tokens():
    model = make()
    tokens = some_tokens(2, 6)
    states = model.transformer.embed(tokens)
    assert torch.equal(model.transformer(states, attention=FULL), model(tokens, attention=FULL))


def test_blocks_run_in_parts_equal_blocks_run_at_once():
    model = make().transformer
    states = model.embed(some_tokens(1, 6))
    rotation = model.rotation(states)
    halfway = model.run_blocks(states, CAUSAL, rotation, stop=1)
    assert torch.equal(model.norm(model.run_blocks(halfway, CAUSAL, rotation, start=1)), model(states))


def test_tied_weights_are_one_parameter_and_untied_ones_two():
    tied, untied = make(), make(tie_embeddings=False)
    assert tied.output_weight is tied.transformer.embedding.weight
    assert untied.output_weight is not untied.transformer.embedding.weight
    assert {name for name, _ in untied.named_parameters()} - {name for name, _ in tied.named_parameters()} == {
        "output.weight"
    }


def test_dropout_follows_the_global_seed_and_is_off_in_evaluation():
    model = make(dropout=0.4)
    tokens = some_tokens(2, 8)
    torch.manual_seed(1)
    first = model(tokens)
    torch.manual_seed(1)
    assert torch.equal(model(tokens), first)
    assert not torch.equal(model(tokens), first)
    model.eval()
    assert torch.equal(model(tokens), make()(tokens))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_recomputation_gives_bit_equal_gradients(dropout):
    tokens, labels = some_tokens(2, 8), some_tokens(2, 8, seed=1)
    results = []
    for recompute in (False, True):
        model = make(dropout=dropout)
        model.transformer.recompute = recompute
        torch.manual_seed(3)
        states = model(tokens).flatten(0, 1)
        loss = next_token_loss(states, model.output_weight, labels.flatten())
        loss.backward()
        results.append((loss, gradients(model)))
    (loss, plain), (loss_again, recomputed) = results
    assert torch.equal(loss, loss_again)
    assert all(torch.equal(plain[name], recomputed[name]) for name in plain)


def test_recomputation_keeps_fewer_activations():
    def kept_bytes(recompute: bool) -> int:
        model = make()
        model.transformer.recompute = recompute
        kept: dict[int, int] = {}

        def keep(tensor: Tensor) -> Tensor:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            states = model(some_tokens(4, 32))
        assert states.requires_grad
        return sum(kept.values())

    assert kept_bytes(True) < 0.5 * kept_bytes(False)


def test_a_sequence_over_max_seq_len_is_refused_with_both_numbers():
    with pytest.raises(DataError, match=r"65.*64"):
        make()(some_tokens(1, 65))


def test_widths_and_heads_that_do_not_divide_are_refused_by_name():
    with pytest.raises(RecipeError, match=r"d_model = 20.*n_heads"):
        shape(d_model=20, n_heads=4)
    with pytest.raises(RecipeError, match=r"n_kv_heads = 3.*n_heads = 4"):
        shape(n_kv_heads=3)


def test_end_of_text_belongs_to_the_document_it_ends():
    tokens = torch.tensor([[5, 0, 6, 7, 0, 0, 8], [0, 1, 2, 3, 4, 5, 0]])
    assert document_ids(tokens, 0).tolist() == [[0, 0, 1, 1, 1, 2, 3], [0, 1, 1, 1, 1, 1, 1]]


def test_a_block_alone_reads_a_mask_as_the_whole_transformer_does():
    model = make(n_layers=1).transformer
    tokens = torch.tensor([[3, 5, END_OF_TEXT, 7, 8]])
    plan = plan_attention(causal=True, document_BL=document_ids(tokens, END_OF_TEXT))
    states = model.embed(tokens)
    alone = model.norm(model.blocks[0](states, plan, model.rotation(states)))
    torch.testing.assert_close(alone, model(tokens, attention=plan), rtol=0, atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_autocast_stays_close_to_float32(masked):
    model = LanguageModel(shape())
    initialise(model, 5)
    tokens = some_tokens(2, 9)
    plan = plan_attention(causal=True, document_BL=document_ids(tokens, 7)) if masked else CAUSAL
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states = model(tokens, attention=plan)
    torch.testing.assert_close(states.float(), model(tokens, attention=plan), rtol=0, atol=0.05)


def test_compilation_traces_model_and_loss_in_one_graph_with_the_same_gradients():
    def loss_of(model: LanguageModel, tokens: Tensor) -> Tensor:
        plan = plan_attention(causal=True, document_BL=document_ids(tokens, 7))
        states = model(tokens, attention=plan)
        return next_token_loss(states[:, :-1].flatten(0, 1), model.output_weight, tokens[:, 1:].flatten())

    tokens = some_tokens(2, 9)
    plain, compiled = make(), make()
    loss_of(plain, tokens).backward()
    torch.compile(loss_of, backend="aot_eager", fullgraph=True)(compiled, tokens).backward()
    expected = gradients(plain)
    for name, gradient in gradients(compiled).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-4)

import pytest
import torch

from strata_core.errors import DataError
from strata_core.models.key_value_cache import KeyValueCache
from tests.strata_core.inference.causal_models import causal_model


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("first", [1, 7, 80])
@torch.inference_mode()
def test_states_equal_those_of_one_pass_over_all_tokens(n_kv_heads, first):
    model = causal_model(longest=90, n_kv_heads=n_kv_heads)
    tokens_L = torch.randint(0, 280, (90,), generator=torch.Generator().manual_seed(0))
    cache = KeyValueCache(model.transformer)
    pieces = [cache.extend(tokens_L[:first]), *(cache.extend(tokens_L[p : p + 1]) for p in range(first, 90))]
    torch.testing.assert_close(torch.cat(pieces), model.states(tokens_L[None])[0], rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_a_copy_goes_on_by_itself():
    model = causal_model()
    cache = KeyValueCache(model.transformer)
    cache.extend(torch.tensor([1, 2, 3]))
    one, other = cache.copy(), cache.copy()
    one.extend(torch.tensor([4]))
    assert torch.equal(other.extend(torch.tensor([5])), cache.extend(torch.tensor([5])))
    assert (one.length, other.length) == (4, 4)


@torch.inference_mode()
def test_more_tokens_than_the_context_are_refused():
    cache = KeyValueCache(causal_model(longest=4).transformer)
    cache.extend(torch.tensor([1, 2, 3, 4]))
    with pytest.raises(DataError, match=r"5 tokens; model.max_seq_len is 4"):
        cache.extend(torch.tensor([5]))


@torch.inference_mode()
def test_several_tokens_come_first_or_not_at_all():
    cache = KeyValueCache(causal_model().transformer)
    cache.extend(torch.tensor([1]))
    with pytest.raises(ValueError, match="only the first tokens may come together"):
        cache.extend(torch.tensor([2, 3]))

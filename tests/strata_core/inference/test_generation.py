import dataclasses

import numpy as np
import pytest
import torch

from strata_core.errors import DataError, UsageError
from strata_core.inference.generation import GenerationSettings, generate
from strata_core.inference.sampling import Sampling
from tests.strata_core.inference.causal_models import causal_model

GREEDY = Sampling(greedy=True)
PROMPTS = ["the dog", "", "the cat hears the river, and then", "Übel"]


@torch.inference_mode()
def slow_greedy(model, prompt, count):
    """The likeliest token, time and again, by whole passes alone."""
    tokens = model.tokenizer.tokenizer.encode(prompt).ids or [model.tokenizer.end_of_text_id]
    start, log_probs = len(tokens), []
    while len(tokens) - start < count:
        scores = model.states(torch.tensor([tokens]))[0, -1] @ model.module.output_weight.T
        tokens.append(int(scores.argmax()))
        log_probs.append(float(scores.double().log_softmax(0)[tokens[-1]]))
        if tokens[-1] == model.tokenizer.end_of_text_id:
            break
    return tokens[start:], log_probs


@pytest.mark.parametrize("memory", [False, True])
def test_greedy_text_is_the_likeliest_token_time_and_again(memory):
    model = causal_model(memory=memory)
    for continued in generate(model, PROMPTS, GenerationSettings(GREEDY, max_new_tokens=20)):
        tokens, log_probs = slow_greedy(model, continued.prompt, 20)
        (sample,) = continued.samples
        assert sample.token_ids == tokens
        np.testing.assert_allclose(sample.token_log_probs, log_probs, atol=1e-4)


def test_the_same_seed_gives_the_same_bits_in_any_batch():
    model, settings = causal_model(), GenerationSettings(max_new_tokens=12, samples=3, seed=7)
    together = generate(model, PROMPTS, settings)
    backwards = generate(model, PROMPTS[::-1], settings)[::-1]
    alone = [generate(model, [prompt], dataclasses.replace(settings, samples=1))[0] for prompt in PROMPTS]
    assert together == backwards
    assert [one.samples[:1] for one in together] == [one.samples for one in alone]
    assert len({tuple(sample.token_ids) for one in together for sample in one.samples}) == 12


def test_another_seed_gives_other_text():
    model = causal_model()
    first, second = (generate(model, ["the"], GenerationSettings(max_new_tokens=9, seed=seed)) for seed in (1, 2))
    assert first != second


def test_the_cache_changes_no_choice():
    model, settings = causal_model(), GenerationSettings(max_new_tokens=12, samples=2)
    without = generate(model, PROMPTS, dataclasses.replace(settings, cached=False))
    for one, other in zip(generate(model, PROMPTS, settings), without, strict=True):
        assert [sample.token_ids for sample in one.samples] == [sample.token_ids for sample in other.samples]


def test_a_stop_string_ends_the_text_before_it():
    model = causal_model()
    (whole,) = generate(model, ["the dog"], GenerationSettings(GREEDY, max_new_tokens=20))[0].samples
    stop = whole.text[3:6]
    shown = []
    settings = GenerationSettings(GREEDY, max_new_tokens=20, stops=(stop,))
    (sample,) = generate(model, ["the dog"], settings, lambda *piece: shown.append(piece[2]))[0].samples
    assert sample.stopped_because == "stop"
    assert sample.text == "".join(shown) == whole.text[: whole.text.index(stop)]
    assert sample.token_ids == whole.token_ids[: len(sample.token_ids)]


def test_the_end_of_a_text_ends_it_and_is_no_part_of_it():
    model, settings = causal_model(longest=4000), GenerationSettings(Sampling(temperature=1e6), max_new_tokens=2000)
    samples = generate(model, ["the"], settings)[0].samples
    assert samples[0].stopped_because == "end_of_text"
    assert samples[0].token_ids[-1] == model.tokenizer.end_of_text_id
    assert "endoftext" not in samples[0].text


def test_a_full_context_ends_the_text_and_says_so():
    model = causal_model(longest=8)
    (sample,) = generate(model, ["the dog"], GenerationSettings(GREEDY, max_new_tokens=50))[0].samples
    assert sample.stopped_because == "context"
    # The last token needs no place of its own: nothing is read after it.
    assert len(model.encode("the dog")) + len(sample.token_ids) == 9


def test_prompts_longer_than_the_context_are_refused_together():
    with pytest.raises(UsageError) as caught:
        generate(causal_model(longest=4), ["the", "the " * 5, "a " * 9], GenerationSettings())
    assert len(caught.value.problems) == 2
    assert "the context of a small model is 4 tokens" in caught.value.message


def test_scores_that_are_not_finite_are_refused():
    model = causal_model()
    with torch.no_grad():
        model.transformer.norm.weight[0] = float("nan")
    with pytest.raises(DataError, match="not finite"):
        generate(model, ["the"], GenerationSettings())


@pytest.mark.parametrize("fields", [{"max_new_tokens": 0}, {"samples": 0}, {"stops": ("",)}])
def test_settings_outside_their_bounds_are_refused(fields):
    with pytest.raises(UsageError):
        GenerationSettings(**fields)

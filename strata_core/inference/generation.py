"""Text that a language model continues.

Every sample is computed by itself, with a cache of its own. The same seed, prompt and number of a sample give the same
bits, and so the same text, whatever other prompts and however many samples are asked for with it.

Shapes: L positions, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from strata_core.errors import DataError, UsageError, first_problems
from strata_core.inference.causal_model import CausalModel
from strata_core.inference.growing_text import GrowingText
from strata_core.inference.sampling import Sampling, distribution, draw, log_softmax, prompt_key, random_number
from strata_core.models.key_value_cache import KeyValueCache

Show = Callable[[int, int, str], None]
"""Told the number of the prompt, that of the sample, and text that follows what was told before."""


@dataclass(frozen=True)
class GenerationSettings:
    """What is asked for.

    Attributes:
        sampling: how tokens are chosen.
        max_new_tokens: of each sample.
        samples: continuations of each prompt.
        stops: strings that end a sample; the text ends before them.
        seed: of all random choices.
        cached: whether keys and values are kept; without, every token costs a pass over all before it.

    Raises:
        UsageError: a value outside its bounds.
    """

    sampling: Sampling = field(default_factory=Sampling)
    max_new_tokens: int = 128
    samples: int = 1
    stops: tuple[str, ...] = ()
    seed: int = 0
    cached: bool = True

    def __post_init__(self) -> None:
        for option, value in (("--max-new-tokens", self.max_new_tokens), ("--samples", self.samples)):
            if value < 1:
                raise UsageError(f"{option} {value}: must be at least 1")
        if "" in self.stops:
            raise UsageError("--stop '': an empty string would stop everything", hint="leave it out")


@dataclass(frozen=True)
class Sample:
    """One continuation.

    Attributes:
        text: without the prompt, and up to the stop string or the end of text.
        token_ids: as they were chosen; the last may be the end of text, or reach into the stop string.
        token_log_probs: of each under the model itself, in nats, before any penalty, temperature or limit.
        stopped_because: "end_of_text", "stop", "max_new_tokens", or "context" where the context is full.
    """

    text: str
    token_ids: list[int]
    token_log_probs: list[float]
    stopped_because: str


@dataclass(frozen=True)
class Continued:
    """A prompt and its continuations."""

    prompt: str
    samples: list[Sample]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


@torch.inference_mode()
def generate(
    model: CausalModel, prompts: Sequence[str], settings: GenerationSettings, show: Show = lambda *_: None
) -> list[Continued]:
    """Continues each prompt; an empty one begins a document.

    A graph-object memory is given nothing to read. A model with a predicate memory is computed without a cache: what
    its memory holds is worked out anew from all positions.

    Raises:
        UsageError: prompts that leave no room in the context; all are listed.
        DataError: the model's scores are not finite.
    """
    encoded = [model.encode(prompt) for prompt in prompts]
    _check_lengths(model, encoded)
    continued = []
    for number, (prompt, tokens) in enumerate(zip(prompts, encoded, strict=True)):
        cached = settings.cached and not model.has_memory
        first: _Sequence = _Cached.of(model, tokens) if cached else _Plain.of(model, tokens)
        samples = [
            _continue(model, tokens, first.copy(), settings, sample, partial(show, number, sample))
            for sample in range(settings.samples)
        ]
        continued.append(Continued(prompt, samples))
    return continued


def _check_lengths(model: CausalModel, encoded: Sequence[Sequence[int]]) -> None:
    faults = [
        f"prompt {number} has {len(tokens):,} tokens"
        for number, tokens in enumerate(encoded, 1)
        if len(tokens) > model.longest
    ]
    if faults:
        raise UsageError(
            f"the context of {model.name} is {model.longest:,} tokens, and a prompt has to fit in it",
            problems=first_problems(faults),
            hint="shorten the prompt",
        )


def _continue(
    model: CausalModel,
    prompt: Sequence[int],
    sequence: _Sequence,
    settings: GenerationSettings,
    number: int,
    show: Callable[[str], None],
) -> Sample:
    rule, key = settings.sampling, prompt_key(prompt)
    text = GrowingText(model.tokenizer.tokenizer, prompt, settings.stops)
    tokens: list[int] = []
    log_probs: list[float] = []
    reason = "max_new_tokens"
    while True:
        scores_V = sequence.scores
        if not np.isfinite(scores_V).all():
            raise DataError(f"the scores of {model.name} are not finite", hint="see strata inspect-ckpt --stats")
        probabilities = distribution(scores_V, (*prompt, *tokens), rule)
        token = draw(probabilities, random_number(settings.seed, key, number, len(tokens)))
        tokens.append(token)
        log_probs.append(float(log_softmax(scores_V)[token]))
        if token == model.tokenizer.end_of_text_id:
            reason = "end_of_text"
            break
        show(text.add(token))
        if text.stopped:
            reason = "stop"
            break
        if len(tokens) == settings.max_new_tokens:
            break
        if len(prompt) + len(tokens) > model.longest:
            reason = "context"
            break
        sequence.add(token)
    show(text.finish())
    return Sample(text.text, tokens, log_probs, "stop" if text.stopped else reason)


class _Sequence(Protocol):
    """One sequence, and the scores of what comes next."""

    scores: np.ndarray

    def add(self, token: int) -> None: ...

    def copy(self) -> _Sequence: ...


def _scores(model: CausalModel, state_D: Tensor) -> np.ndarray:
    """float32 [V], of what comes after a position's state."""
    return (model.module.output_weight @ state_D).float().cpu().numpy()


class _Cached:
    def __init__(self, model: CausalModel, cache: KeyValueCache, scores: np.ndarray) -> None:
        self._model, self._cache, self.scores = model, cache, scores

    @classmethod
    def of(cls, model: CausalModel, tokens: Sequence[int]) -> _Cached:
        cache = KeyValueCache(model.transformer)
        states_LD = cache.extend(torch.tensor(tokens, device=model.device))
        return cls(model, cache, _scores(model, states_LD[-1]))

    def add(self, token: int) -> None:
        state_D = self._cache.extend(torch.tensor([token], device=self._model.device))[-1]
        self.scores = _scores(self._model, state_D)

    def copy(self) -> _Cached:
        return _Cached(self._model, self._cache.copy(), self.scores)


class _Plain:
    """The slow way: a pass over the whole sequence for each token."""

    def __init__(self, model: CausalModel, tokens: tuple[int, ...], scores: np.ndarray) -> None:
        self._model, self._tokens, self.scores = model, tokens, scores

    @classmethod
    def of(cls, model: CausalModel, tokens: Sequence[int]) -> _Plain:
        states_1LD = model.states(torch.tensor([tokens], device=model.device))
        return cls(model, tuple(tokens), _scores(model, states_1LD[0, -1]))

    def add(self, token: int) -> None:
        longer = _Plain.of(self._model, (*self._tokens, token))
        self._tokens, self.scores = longer._tokens, longer.scores

    def copy(self) -> _Plain:
        return _Plain(self._model, self._tokens, self.scores)

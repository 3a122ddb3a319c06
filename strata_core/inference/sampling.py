"""How the next token is chosen from a model's scores.

Shapes: V vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from strata_core.errors import UsageError
from strata_core.randomness import derive_seed


@dataclass(frozen=True)
class Sampling:
    """The rule of choice. What is off changes nothing.

    Attributes:
        greedy: always the likeliest token, of several the one with the lowest id.
        temperature: scores are divided by it; above 0.
        top_k: only so many likeliest tokens; None: all.
        top_p: only the fewest likeliest tokens that have this probability together (Holtzman et al. 2020).
        min_p: only tokens with this share of the likeliest one's probability (Nguyen et al. 2024).
        repetition_penalty: scores of tokens that have occurred are divided by it where positive, else multiplied
            (Keskar et al. 2019).

    Raises:
        UsageError: a value outside its bounds.
    """

    greedy: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        _check("--temperature", self.temperature, 0 < self.temperature < np.inf, "a number above 0", "--greedy for 0")
        _check("--top-k", self.top_k, self.top_k is None or self.top_k >= 1, "at least 1", "leave it out for all")
        _check("--top-p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1", "1 keeps all tokens")
        _check("--min-p", self.min_p, 0 <= self.min_p <= 1, "from 0 to 1", "0 keeps all tokens")
        penalty = self.repetition_penalty
        _check("--repetition-penalty", penalty, 0 < penalty < np.inf, "a number above 0", "1 changes nothing")


def _check(option: str, value: object, holds: bool, wanted: str, hint: str) -> None:
    if not holds:
        raise UsageError(f"{option} {value}: must be {wanted}", hint=hint)


def log_softmax(scores_V: np.ndarray) -> np.ndarray:
    """Log probabilities, float64 [V]."""
    shifted = scores_V.astype(np.float64) - scores_V.max()
    return shifted - np.log(np.exp(shifted).sum())


def distribution(scores_V: np.ndarray, seen: Iterable[int], rule: Sampling) -> np.ndarray:
    """The probabilities of the draw, float64 [V]: after penalty, temperature, top-k, top-p, min-p, in this order.

    Each step works on what the one before has left, made to sum to 1 again. Of equally likely tokens at a limit, those
    with the lower ids stay.

    Args:
        scores_V: float, the model's.
        seen: tokens that have occurred, prompt included.
        rule: how to choose; `greedy` gives all probability to one token.
    """
    scores = scores_V.astype(np.float64)
    if rule.repetition_penalty != 1.0:
        ids = np.array(sorted(set(seen)), dtype=np.int64)
        of_seen = scores[ids]
        scores[ids] = np.where(of_seen > 0, of_seen / rule.repetition_penalty, of_seen * rule.repetition_penalty)
    if rule.greedy:
        chosen = np.zeros_like(scores)
        chosen[int(scores.argmax())] = 1.0
        return chosen
    probabilities = np.exp(log_softmax(scores / rule.temperature))
    if rule.top_k is not None or rule.top_p < 1.0:
        order = np.argsort(-probabilities, kind="stable")
        if rule.top_k is not None:
            probabilities[order[rule.top_k :]] = 0.0
            probabilities /= probabilities.sum()
        if rule.top_p < 1.0:
            before = np.cumsum(probabilities[order]) - probabilities[order]
            probabilities[order[before >= rule.top_p]] = 0.0
            probabilities /= probabilities.sum()
    if rule.min_p > 0.0:
        probabilities[probabilities < rule.min_p * probabilities.max()] = 0.0
        probabilities /= probabilities.sum()
    return probabilities


def draw(probabilities_V: np.ndarray, number: float) -> int:
    """The token at `number` in [0, 1) of the cumulated probabilities, in order of ids; never one of probability 0."""
    cumulated = np.cumsum(probabilities_V)
    token = int(np.searchsorted(cumulated, number * cumulated[-1], side="right"))
    return min(token, int(np.flatnonzero(probabilities_V)[-1]))


def prompt_key(tokens: Sequence[int]) -> int:
    """What a prompt is known by in the keys of its random numbers: its content, never its place in a batch."""
    digest = hashlib.blake2b(",".join(map(str, tokens)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def random_number(seed: int, prompt: int, sample: int, position: int) -> float:
    """The number in [0, 1) that decides one token: a function of the key alone.

    Args:
        seed: of the request.
        prompt: of `prompt_key`.
        sample: which of a prompt's continuations, from 0.
        position: tokens of the continuation before this one.
    """
    return (derive_seed(seed, "generated token", prompt, sample, position) >> 10) * 2.0**-53

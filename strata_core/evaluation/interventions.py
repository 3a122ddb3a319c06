"""The interventions table: what the graph given with a sentence does to the loss of its text, by what the graph holds.

The graph is that of the whole sentence, annotated by hand: its readers are oracles, and their loss is not a language
model's.

Shapes: E sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from strata_core.evaluation.bootstrap import paired_bootstrap


def interventions_table(
    nats: Mapping[str, np.ndarray], tokens: np.ndarray, *, seed: int = 0, resamples: int = 10_000
) -> dict[str, Any]:
    """Loss per token under each intervention, and its change with intervals over sentences.

    Args:
        nats: float [E] by intervention ("none", "typed", "untyped", "random"), each sentence's loss; "none" is what the
            others are compared to.
        tokens: int [E], predicted tokens of each sentence.
        seed, resamples: of the paired bootstrap over sentences.

    Returns:
        "interventions": a row for each, "graph", "sentences", "tokens" and "loss" in nats per token.
        "intervention_differences": a row for each but "none", its loss minus that of "none", and for "untyped" and
        "random" that of "typed" minus theirs: "of", "minus", and the fields of PairedDifference.

    Raises:
        ValueError: there is no sentence.
    """

    def compared(of: str, minus: str) -> dict[str, Any]:
        pair = [np.stack((nats[name], tokens), axis=1) for name in (minus, of)]
        found = paired_bootstrap(pair[0], pair[1], seed=seed, resamples=resamples)
        return {"of": of, "minus": minus, **asdict(found)}

    total = int(tokens.sum())
    rows = [
        {"graph": name, "sentences": len(tokens), "tokens": total, "loss": float(values.sum() / total)}
        for name, values in nats.items()
    ]
    differences = [compared(name, "none") for name in nats if name != "none"]
    differences += [compared("typed", name) for name in ("untyped", "random") if name in nats]
    return {"interventions": rows, "intervention_differences": differences}

"""Trains one structured recipe on one and on two ranks; half of the micro-batches have no role at all.

Usage: python -m tests.drills.structured_ranks FOLDER. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from strata_core.corpus.preparing.preparation import prepare_corpus
from strata_core.corpus.preparing.settings import PreparationSettings
from strata_core.corpus.reading import open_corpus
from strata_core.launch.starting import train
from tests.drills.forking import differences, in_ranks, records_without_timing
from tests.strata_core.tasks.sentence_structure.treebank_corpus import (
    ALL_WEIGHTS,
    small_recipe,
    small_task,
    write_treebank,
)

STEPS = 8
SETTINGS = (
    *ALL_WEIGHTS,
    "model.predicate_memory.enabled=true",
    "model.dropout=0.1",
    "model.heads.dropout=0.1",
    "model.word_dropout=0.1",
    "batch.batch_size=8",
    "batch.micro_batch_size=4",
    "batch.sentences=4",
    f"run.max_steps={STEPS}",
    "evaluation.every=4",
)
EXACT = "distributed.exact_reduction=true"


def write_corpus(folder: Path) -> Path:
    """A treebank of which every fourth training sentence has roles."""
    write_treebank(folder / "in" / "a-train.conllu", range(12))
    write_treebank(folder / "in" / "b-train.conllu", range(100, 136), roles=False)
    write_treebank(folder / "in" / "c-dev.conllu", range(1000, 1010))
    settings = PreparationSettings(vocab_size=300, workers=1, backend="tokenizers")
    prepare_corpus([folder / "in"], folder / "corpus", settings)
    return folder / "corpus"


def main() -> None:
    folder = Path(sys.argv[1])
    corpus = open_corpus(write_corpus(folder))
    codes = []
    for name, ranks, settings in (
        ("one", 1, SETTINGS),
        ("two", 2, SETTINGS),
        ("exact-one", 1, (*SETTINGS, EXACT)),
        ("exact-two", 2, (*SETTINGS, EXACT)),
    ):
        recipe = small_recipe(corpus, *settings)
        codes += in_ranks(lambda recipe=recipe, name=name: bool(train(recipe, folder / name, device="cpu")) - 1, ranks)
    one, two = (records_without_timing(folder / name / "metrics.jsonl") for name in ("one", "two"))
    pairs = [(first["loss"], second["loss"]) for first, second in zip(one, two, strict=True)]
    task = small_task(corpus, *SETTINGS)
    batches = [task.fetch(part) for step in range(STEPS) for part in task.plan(step).micro_batches]
    different = differences(folder / "exact-two", folder / "exact-one", STEPS)
    outcome = {
        "codes": codes,
        "steps": len(pairs),
        "largest_error": max(abs(first - second) / abs(first) for first, second in pairs),
        "different": [name for name in different if not name.endswith("manifest.json")],
        "without_roles": sum(len(batch["predicates"]) == 0 for batch in batches),
        "with_roles": sum(len(batch["predicates"]) > 0 for batch in batches),
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()

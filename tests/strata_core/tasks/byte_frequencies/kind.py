"""The kind of task that learns how often bytes come, for corpora whose tokens are bytes."""

from strata_core.tasks.kind import TaskKind
from tests.strata_core.tasks.byte_frequencies.task import ByteFrequencies, Frequencies, nats_of_file

KIND = TaskKind(
    name="byte-frequencies",
    described="a table of byte frequencies",
    recipe_kind="lm",
    suits=lambda recipe, corpus: corpus.vocab_size == 257,
    make_task=ByteFrequencies,
    build_model=lambda config: Frequencies(config["size"]),
    recipe_tables=lambda config: {"kind": "lm", "batch": {"batch_size": 1, "seq_len": config["seq_len"]}},
    predict=nats_of_file,
    recommends=lambda corpus, info: "quickstart" if info.get("vocab_size") == 257 else None,
)

"""Does structure help the language model? Pure LM against ud, srl and mixed supervision on one corpus, in one table.

Run: python benchmarks/structure_for_lm.py CORPUS [--seeds 3] [--steps 250] [--pairs 640] [--folder DIR]

All rows have the same transformer, which is what predicts; the heads that structured rows train beside it are left out
of the count of parameters, and no row has a memory. Structured rows take the given number of steps of windows and
annotated sentences; the pure row trains on windows alone until it has seen as many tokens. Rows of one seed begin with
the same weights.

Columns, mean over seeds with the standard deviation: bits per byte on the validation split at the last step, and the
share of minimal pairs on number agreement (corpus.generators.agreement) whose right sentence has the higher
probability; "attracted" are the pairs whose nearest noun has the number of the wrong verb.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from strata_core.corpus.generators.agreement import agreement_pair
from strata_core.launch.starting import train
from strata_core.objectives.next_token import next_token_nats
from strata_core.recipes import load_recipe
from strata_core.tasks.data import open_data
from strata_core.tasks.registry import make_task
from strata_core.training.trained import find_trained

MODEL = (
    "model.d_model=128",
    "model.n_layers=3",
    "model.heads.arc_width=64",
    "model.dropout=0.1",
    "model.max_seq_len=256",
    "model.predicate_memory.enabled=false",
)
TRAINING = (
    "batch.seq_len=128",
    "optimizer.warmup_ratio=0.05",
    "run.log_every=100",
    "checkpoint.every=0",
    "run.precision=fp32",
)
NO_STRUCTURE = (
    "objective.ud.arc=0",
    "objective.ud.relation=0",
    "objective.ud.node_type=0",
    "objective.srl.predicate=0",
    "objective.srl.role=0",
    "objective.chart.type=0",
)
WINDOWS, SENTENCES = 4, 16
ROWS = {"pure": "lm/mixed", "ud": "lm/ud", "srl": "lm/srl", "mixed": "lm/mixed"}
PAIR_SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=250, help="steps of the structured rows")
    parser.add_argument("--pairs", type=int, default=640)
    parser.add_argument("--folder", type=Path, default=None, help="of runs; those in it are not repeated")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="structure-for-lm-"))
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ROWS}
    for seed in range(1, arguments.seeds + 1):
        tokens = 0
        for name in ("mixed", "ud", "srl", "pure"):
            run = folder / f"{name}-{seed}"
            if not run.exists():
                _train(name, run, arguments.corpus, seed, arguments.steps, tokens)
            outcome = _measure(run, arguments.pairs)
            tokens = tokens or int(outcome["tokens"])
            found[name].append(outcome)
            print(name, seed, json.dumps(outcome), flush=True)
    _show(found)


def _train(name: str, run: Path, corpus: Path, seed: int, steps: int, tokens: int) -> None:
    settings = [*MODEL, *TRAINING, f"corpus.path={corpus}", f"run.seed={seed}"]
    if name == "pure":
        windows = round(tokens / steps / 128)
        settings += [*NO_STRUCTURE, "batch.sentences=0", f"batch.batch_size={windows}", "batch.micro_batch_size="]
        steps = round(tokens / windows / 128)
    else:
        settings += [f"batch.sentences={SENTENCES}", f"batch.batch_size={WINDOWS + SENTENCES}"]
        settings += ["batch.micro_batch_size="]
    settings += [f"run.max_steps={steps}", f"evaluation.every={steps}", "evaluation.metric=bits_per_byte"]
    train(load_recipe(ROWS[name], "lm", settings), run, device="cpu")


def _measure(run: Path, n_pairs: int) -> dict[str, float]:
    evaluations = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    trained = find_trained(run, choose="latest")
    recipe = trained.recipe()
    assert recipe is not None
    model = make_task(recipe, open_data(recipe)).build_model()
    trained.load_into(model)
    tokenizer = Tokenizer.from_file(str(trained.checkpoint.path / "tokenizer.json"))
    end_of_text = int(trained.config["end_of_text_id"])
    pairs = [agreement_pair(PAIR_SEED, index) for index in range(n_pairs)]
    right = [
        _nats(model, tokenizer, end_of_text, pair.right) < _nats(model, tokenizer, end_of_text, pair.wrong)
        for pair in pairs
    ]
    attracted = [good for good, pair in zip(right, pairs, strict=True) if pair.attracted]
    return {
        "tokens": metrics[-1]["tokens_seen"],
        "bits_per_byte": evaluations[-1]["bits_per_byte"],
        "agreement": statistics.mean(right),
        "attracted": statistics.mean(attracted),
        "parameters": sum(value.numel() for value in model.transformer.parameters()),
    }


@torch.no_grad()
def _nats(model: Any, tokenizer: Tokenizer, end_of_text: int, words: tuple[str, ...]) -> float:
    text = " ".join(words[:-1]) + words[-1]
    ids = torch.tensor([[end_of_text, *tokenizer.encode(text, add_special_tokens=False).ids]])
    states = model(ids[:, :-1])
    states = getattr(states, "states_BLD", states)
    return float(next_token_nats(states.flatten(0, 1), model.output_weight, ids[0, 1:]).sum())


def _show(found: dict[str, list[dict[str, float]]]) -> None:
    print("| | tokens | parameters | bits per byte | agreement | attracted |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, outcomes in found.items():
        cells = [f"{int(outcomes[0][key]):,}" for key in ("tokens", "parameters")]
        for key in ("bits_per_byte", "agreement", "attracted"):
            values = [outcome[key] for outcome in outcomes]
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            cells.append(f"{statistics.mean(values):.4f} +- {deviation:.4f}")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()

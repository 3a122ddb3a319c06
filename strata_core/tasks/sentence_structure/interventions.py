"""The loss of annotated sentences in the causal pass, sentence by sentence, under each intervention on their graphs."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from strata_core.corpus.reading import Corpus
from strata_core.corpus.treebanks.structure_reading import StructureReader
from strata_core.evaluation.interventions import interventions_table
from strata_core.models.edge_slots import Intervention
from strata_core.models.structured_language_model import MemoryInput, StructuredLanguageModel
from strata_core.objectives.next_token import next_token_nats
from strata_core.randomness import derive_seed
from strata_core.recipes.lm import LMRecipe
from strata_core.tasks.sentence_structure.annotated_sentences import padded_lengths
from strata_core.tasks.sentence_structure.annotation import usable_sentences
from strata_core.tasks.sentence_structure.sentence_batches import SentenceBatches
from strata_core.tasks.sentence_structure.sentence_graphs import slot_tensors, slots_of
from strata_core.tasks.sentence_structure.sentence_tensors import causal_tensors
from strata_core.training.task import EvaluationContext

INTERVENTIONS: tuple[Intervention, ...] = get_args(Intervention)
_SENTENCES_AT_ONCE = 32
_SEED = 0


def report_interventions(
    model: nn.Module, recipe: LMRecipe, corpus: Corpus, split: str, context: EvaluationContext
) -> dict[str, Any]:
    """The interventions table over a split's sentences that have arguments; nothing where there are none.

    Raises:
        EvaluationStopped: a stop was requested meanwhile.
    """
    assert isinstance(model, StructuredLanguageModel)
    if corpus.info.structure is None:
        return {}
    reader = corpus.structure(split)
    usable = usable_sentences(reader, recipe.model.max_seq_len)
    numbers = np.array([n for n in usable.tolist() if len(reader.arrays(n).arguments)], dtype=np.int64)
    if not len(numbers):
        return {}
    lengths = padded_lengths(reader, causal=True)
    batches = SentenceBatches(lengths, numbers, sentences_per_batch=_SENTENCES_AT_ONCE, seed=_SEED)
    nats = context.zeros(len(INTERVENTIONS), len(reader))
    for index in context.my_share(batches.n_batches):
        chosen = batches.batch(index)
        nats[:, torch.from_numpy(chosen).to(context.device)] = _nats(model, reader, chosen, context).to(nats)
    found = context.ranks.sum(nats).cpu().double().numpy()[:, numbers]
    by_intervention: dict[str, np.ndarray] = dict(zip(INTERVENTIONS, found, strict=True))
    return interventions_table(by_intervention, reader.token_counts[numbers] - 1)


def _nats(
    model: StructuredLanguageModel, reader: StructureReader, numbers: np.ndarray, context: EvaluationContext
) -> Tensor:
    """Loss of each sentence under each of INTERVENTIONS, float [4, B]."""
    sentences = [reader.arrays(number) for number in numbers.tolist()]
    seeds = [derive_seed(_SEED, "random graph of a held-out sentence", number) for number in numbers.tolist()]
    text = causal_tensors(sentences, learn=True)
    tokens_BL, labels_BL = (text[f"sentence_{name}"].to(context.device) for name in ("tokens", "labels"))
    rows = []
    for intervention in INTERVENTIONS:
        slots = {n: t.to(context.device) for n, t in slot_tensors(sentences, intervention, seeds).items()}
        with torch.no_grad(), context.autocast():
            states_BLD = model(tokens_BL, memory=MemoryInput(slots_of(slots, full=False))).states_BLD
            nats_N = next_token_nats(states_BLD.flatten(0, 1), model.output_weight, labels_BL.flatten())
        rows.append(nats_N.view(labels_BL.shape).sum(dim=1))
    return torch.stack(rows)

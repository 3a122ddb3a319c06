"""The graph object of annotated sentences: their predicates' arguments as edge slots, at words and at tokens.

Shapes: B sentences, W words, A edges of one sentence, S slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from strata_core.corpus.treebanks.labels import NO_LABEL
from strata_core.corpus.treebanks.role_edit_examples import edge_type, last_tokens
from strata_core.corpus.treebanks.structure_reading import SentenceArrays
from strata_core.models.edge_slots import EdgeSlots, Intervention, pack_slots
from strata_core.models.readback import Mixture, full_pass_readback, mixture_at
from strata_core.models.structured_language_model import NOTHING, MemoryInput
from strata_core.randomness import derive_seed
from strata_core.recipes.lm import LMRecipe
from strata_core.training.task import Batch

READBACK = "readback_mixture"
"""The name in a batch of the step's mixture, float32 [2]: what each memory's readback is multiplied by."""


def sentence_edges(sentence: SentenceArrays) -> np.ndarray:
    """From each predicate to each of its arguments, int64 [A, 3]: source word, target word, both from 0, and type."""
    edges = sentence.arguments.astype(np.int64)
    edges[:, :2] -= 1
    edges[:, 2] += edge_type(0)
    return edges


def slot_tensors(sentences: Sequence[SentenceArrays], intervention: Intervention, seeds: Sequence[int]) -> Batch:
    """The sentences' graphs under an intervention, [B, S]; `slots_of` makes EdgeSlots of them.

    Args:
        sentences: at least one; one without arguments has no slot.
        intervention: what the slots hold; see `edge_slots.intervene`.
        seeds: one for each sentence, for "random".
    """
    slots = pack_slots([sentence_edges(sentence) for sentence in sentences], intervention, seeds)
    last_BW = np.zeros((len(sentences), max(len(sentence.heads) for sentence in sentences)), dtype=np.int64)
    for row, sentence in enumerate(sentences):
        last_BW[row, : len(sentence.heads)] = last_tokens(sentence.token_spans)
    ends = {"source": slots.source_BS, "target": slots.target_BS}
    return {
        **{f"slot_{end}_words": words_BS for end, words_BS in ends.items()},
        **{f"slot_{end}_tokens": torch.from_numpy(last_BW).gather(1, words_BS) for end, words_BS in ends.items()},
        "slot_types": slots.type_BS,
        "slot_readable": slots.readable_BS,
    }


def slots_of(batch: Batch, *, full: bool) -> EdgeSlots:
    """The slots as the full pass reads them, at words, or as the causal pass does, at the words' last tokens."""
    unit = "words" if full else "tokens"
    return EdgeSlots(
        batch[f"slot_source_{unit}"], batch[f"slot_target_{unit}"], batch["slot_types"], batch["slot_readable"]
    )


def slot_type_labels(batch: Batch) -> Tensor:
    """What each slot's type is to be told as from its ends: the type it holds, int64 [B, S]; NO_LABEL where unread."""
    return torch.where(batch["slot_readable"], batch["slot_types"], NO_LABEL)


class SentenceGraphs:
    """What the annotated sentences of a run bring to the memories: their graphs, and how strongly both are read.

    Args:
        recipe: the run's.
    """

    def __init__(self, recipe: LMRecipe) -> None:
        self._seed = recipe.run.seed
        self._settings = recipe.model.graph_object_memory

    def tensors(
        self,
        sentences: Sequence[SentenceArrays],
        numbers: Sequence[int],
        *,
        step: int | None,
        learn: bool = True,
    ) -> Batch:
        """What a batch of sentences needs; nothing where the model has no graph-object memory.

        Args:
            sentences: at least one.
            numbers: of the sentences, which key the graphs that are dealt out anew.
            step: the optimizer step, from 0; None in evaluation, which reads as the anneal's last step does.
            learn: False where there is nothing to learn of the sentences: their graphs cannot be read then.
        """
        if not self._settings.enabled:
            return {}
        seeds = [derive_seed(self._seed, "random graph of a sentence", number) for number in numbers]
        anneal_steps = self._settings.anneal_steps
        mixture = mixture_at(
            anneal_steps - 1 if step is None else step,
            anneal_steps,
            final_learned_weight=self._settings.anneal_final_learned_weight,
            fixed_learned_weight=self._settings.learned_weight,
        )
        slots = slot_tensors(sentences, self._settings.intervention if learn else "none", seeds)
        return slots | {READBACK: torch.tensor(mixture, dtype=torch.float32)}

    def memory_input(self, batch: Batch, *, full: bool, training: bool) -> MemoryInput:
        """What `tensors` gave, for one of the passes. Only the full pass mixes and drops; the causal one reads all."""
        if READBACK not in batch:
            return NOTHING
        slots = slots_of(batch, full=full)
        if not full:
            return MemoryInput(slots)
        dropout = self._settings.predicate_memory_dropout if training else 0.0
        mixture, rows = Mixture(*batch[READBACK].unbind()), len(slots.type_BS)
        return MemoryInput(
            slots,
            readback=full_pass_readback(rows, mixture, learned_dropout=dropout, device=slots.type_BS.device),
        )

    def count(self, sentence: SentenceArrays) -> int:
        """How many labels `slot_type_labels` gives for a sentence."""
        return 0 if self._settings.intervention == "none" else len(sentence.arguments)

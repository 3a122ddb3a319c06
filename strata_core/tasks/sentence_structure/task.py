"""The task of training a language model that is taught structure: windows of text and annotated sentences.

A step holds windows of text, which get a causal pass, and annotated sentences, which get a causal pass over their
subwords and a full pass over their words. Every micro-batch has its share of both, so that each rank reaches every
trained parameter in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strata_core.corpus.reading import Corpus
from strata_core.corpus.treebanks.chart_items import CHART_SCHEMES
from strata_core.corpus.treebanks.labels import ROOT_RELATION
from strata_core.corpus.treebanks.structure_reading import SentenceArrays, StructureReader
from strata_core.errors import RecipeError
from strata_core.evaluation.structure_scores import PredictedStructure, StructureCounts, predict_structure
from strata_core.evaluation.word_labels import LOSS_OF_KIND
from strata_core.models import StructuredConfig, StructuredLanguageModel, initialise
from strata_core.models.graph_object_memory import GraphObjectMemoryConfig
from strata_core.models.predicate_memory import PredicateMemoryConfig
from strata_core.models.segmenter import CharacterSegmenter
from strata_core.models.structure_heads import HeadsConfig
from strata_core.models.structured_language_model import GRAPH_OBJECT_PREFIX
from strata_core.models.word_states import states_at
from strata_core.objectives.next_token import next_token_loss
from strata_core.objectives.structure import class_loss
from strata_core.recipes.lm import STRUCTURE_WEIGHTS, LMRecipe
from strata_core.tasks.language_model.task import LanguageModelTask
from strata_core.tasks.sentence_structure.annotated_sentences import (
    AnnotatedSentences,
    SentencePart,
    padded_lengths,
)
from strata_core.tasks.sentence_structure.annotation import usable_sentences, without_unannotated
from strata_core.tasks.sentence_structure.evaluation import Confusions, count_split, majority_baselines, predicates_of
from strata_core.tasks.sentence_structure.interventions import report_interventions
from strata_core.tasks.sentence_structure.losses import LOSS_OF_WEIGHT, structure_losses
from strata_core.tasks.sentence_structure.role_edits.evaluation import measure_role_edits, report_role_edits
from strata_core.tasks.sentence_structure.role_edits.losses import RoleEditObjectives
from strata_core.tasks.sentence_structure.role_edits.source import RoleEdits, held_out_role_edits, training_role_edits
from strata_core.tasks.sentence_structure.segmentation.objective import SegmentationObjective
from strata_core.tasks.sentence_structure.sentence_batches import SentenceBatches
from strata_core.tasks.sentence_structure.sentence_graphs import slot_type_labels
from strata_core.tasks.sentence_structure.sentence_tensors import words_of
from strata_core.training.task import Batch, EvaluationContext, StepPlan

_OF_GRAPHS = {"intervention", "learned_weight", "anneal_final_learned_weight"}
_OF_ROLE_EDITS = {"source", "bias_value", "override_scope"}
"""The settings of graph objects and of role edits that an evaluation depends on, beside the model's shape."""


@dataclass(frozen=True)
class MicroBatch:
    """What one forward pass reads.

    Attributes:
        step: the optimizer step, from 0.
        windows: numbers of windows of text.
        sentences: annotated sentences; None where the recipe has none.
        role_edits: numbers of role edits.
        segments: positions of windows of raw text.
    """

    step: int
    windows: np.ndarray
    sentences: SentencePart | None
    role_edits: np.ndarray
    segments: np.ndarray


class StructuredTask:
    """Next tokens, trees, parts of speech, predicates, roles and chart items, each as far as its weight is above 0."""

    kind = "structured-lm"
    metric_directions: Mapping[str, str] = {
        "loss": "min",
        "bits_per_byte": "min",
        "uas": "max",
        "las": "max",
        "upos": "max",
        "xpos": "max",
        "ufeats": "max",
        "alltags": "max",
        "lemmas": "max",
        "predicate_f1": "max",
        "role_f1": "max",
        "role_f1_predicted": "max",
        "chart": "max",
        "tokens_f1": "max",
        "sentences_f1": "max",
        "words_f1": "max",
        "structure": "max",
        "role_edit_direction": "max",
    }
    rate_factors: Mapping[str, float] = {}
    shapes_vary = True

    def __init__(self, recipe: LMRecipe, corpus: Corpus) -> None:
        """Takes the corpus as it is; `check` tells whether there is enough of it.

        Raises:
            RecipeError: the recipe was written for another vocabulary, or reads annotated sentences that the corpus has
                not.
        """
        batch = recipe.batch
        self._recipe = recipe
        self._corpus = corpus
        self._n_micro_batches = batch.batch_size // batch.micro_batch_size
        self._n_windows = batch.batch_size - batch.sentences
        weights = {"lm": recipe.objective.lm}
        weights |= {LOSS_OF_WEIGHT[name]: recipe.weight(name) for name in STRUCTURE_WEIGHTS}
        self._role_edits = RoleEditObjectives(recipe, self._find_role_edits)
        weights |= {"graph_object_aux": recipe.objective.graph_object.aux, **self._role_edits.loss_weights}
        self._segmentation = SegmentationObjective(recipe, corpus)
        weights |= self._segmentation.loss_weights
        active = {name: weight for name, weight in weights.items() if weight}
        self._lacking: Mapping[str, str] = {}
        self.loss_weights: Mapping[str, float] = active
        if batch.sentences:
            self.loss_weights, self._lacking = without_unannotated(active, recipe, corpus)
        self._text = LanguageModelTask(_windows_alone(recipe, self._n_windows, self._n_micro_batches), corpus)
        self._sentences = AnnotatedSentences(recipe, corpus, self.loss_weights) if batch.sentences else None

    def _find_role_edits(self) -> RoleEdits:
        source, seed = self._recipe.objective.role_edit.source, self._recipe.run.seed
        return training_role_edits(self._corpus, source, seed, self._recipe.model.max_seq_len)

    def check(self) -> None:
        """Refuses data that cannot fill a step or an evaluation, or lacks what is to be learned.

        Raises:
            RecipeError: with the numbers.
        """
        if self._n_windows:
            self._text.check()
        if self._sentences is not None:
            self._sentences.check()
        self._role_edits.check()
        self._segmentation.check()
        if self._recipe.evaluation.every and self._recipe.evaluation.metric == "role_edit_direction":
            self._check_held_out_role_edits()

    def _check_held_out_role_edits(self) -> None:
        source, longest = self._recipe.objective.role_edit.source, self._recipe.model.max_seq_len
        if held_out_role_edits(self._corpus, source, "val", longest).n_examples == 0:
            raise RecipeError(
                f"evaluation.metric is 'role_edit_direction', but none of the {len(self._corpus.structure('val')):,} "
                f"annotated validation sentences of {self._corpus.path} makes a role edit of at most {longest} tokens",
                hint='set objective.role_edit.source = "generated", another evaluation.metric, or evaluation.every = 0',
            )

    def build_model(self) -> StructuredLanguageModel:
        """The model with its first weights, on the default device; what no objective reaches is frozen."""
        model = StructuredLanguageModel(self._model_config())
        model.transformer.recompute = self._recipe.memory.recompute == "blocks"
        initialise(model, self._recipe.run.seed)
        unreached = self._unreached()
        alone = self._recipe.model.graph_object_memory.train_alone
        for name, parameter in model.named_parameters():
            trained = not name.startswith(unreached) and (name.startswith(GRAPH_OBJECT_PREFIX) or not alone)
            parameter.requires_grad_(trained)
        return model

    def _unreached(self) -> tuple[str, ...]:
        """What the names of the parameters begin with that no active objective reaches."""
        losses = self.loss_weights.keys()
        readers = {
            f"{GRAPH_OBJECT_PREFIX}type_head.": "graph_object_aux" in losses,
            GRAPH_OBJECT_PREFIX: self._graphs_are_read or self._role_edits.reads_graphs,
            "words.": self._sentences is not None and self._sentences.needs.full,
            "output.": "lm" in losses,
            "heads.arcs.": "ud_arc" in losses,
            "heads.relations.": "ud_relation" in losses,
            "heads.node_types.": "node_type" in losses,
            "heads.predicates.": "srl_predicate" in losses,
            "heads.roles.": bool({"srl_role", "srl_core_role"} & losses),
            "heads.chart_items.": "chart_type" in losses,
        }
        return tuple(prefix for prefix, reached in readers.items() if not reached)

    @property
    def _graphs_are_read(self) -> bool:
        """Whether a pass over annotated sentences reads anything of their graphs."""
        if self._sentences is None or self._recipe.model.graph_object_memory.intervention == "none":
            return False
        return self._sentences.needs.causal or self._sentences.needs.full

    def _model_config(self) -> StructuredConfig:
        model, labels = self._recipe.model, self._labels()
        learned, given = model.predicate_memory, model.graph_object_memory
        return StructuredConfig(
            transformer=self._text.shape,
            heads=HeadsConfig(
                n_relations=max(len(labels["relation"]), 1),
                n_node_types=max(len(labels["upos"]), 1),
                n_roles=len(labels["role"]),
                n_chart_items=CHART_SCHEMES[self._recipe.objective.chart.scheme][0],
                **model.heads.model_dump(),
                n_xpos=len(labels.get("xpos", ())),
                n_feats=len(labels.get("feats", ())),
                n_lemma_rules=len(labels.get("lemma_rule", ())),
            ),
            feature_buckets=model.word_features.buckets,
            word_dropout=model.word_dropout,
            memory_layer=model.memory_layer,
            predicate_memory=PredicateMemoryConfig(learned.channel_width, learned.role_width, learned.initial_gate)
            if learned.enabled
            else None,
            graph_object_memory=GraphObjectMemoryConfig(len(labels["role"]), given.n_heads, given.initial_gate)
            if given.enabled
            else None,
            segmenter=self._segmentation.shape,
        )

    def _labels(self) -> dict[str, list[str]]:
        structure = self._corpus.info.structure
        kinds = (
            "upos",
            "relation",
            "role",
            *(kind for kind, loss in LOSS_OF_KIND.items() if loss in self.loss_weights),
        )
        return {kind: list(structure.labels[kind]) if structure is not None else [] for kind in kinds}

    def plan(self, step: int) -> StepPlan:
        """The step's windows and role edits at their positions in the order, and its sentences, in micro-batches."""
        sentences = None if self._sentences is None else self._sentences.batch(step)
        return self._plan_of(step, sentences, self._role_edits.plan(step), self._segmentation.plan(step))

    def worst_step(self) -> StepPlan:
        """Micro-batches of the costliest sentences, each with the largest share of the longest role edits."""
        if self._sentences is None:
            plan = self._plan_of(0, None, self._role_edits.worst(), self._segmentation.plan(0))
            worst = plan.micro_batches[0]
        else:
            numbers = self._sentences.costliest(self._n_micro_batches)
            tiled = np.tile(numbers, self._n_micro_batches)
            plan = self._plan_of(0, tiled, self._role_edits.worst(), self._segmentation.plan(0))
            worst = replace(plan.micro_batches[0], sentences=SentencePart(numbers, True))
        return StepPlan([worst] * self._n_micro_batches, plan.counts, plan.samples, plan.tokens)

    def _plan_of(self, step: int, numbers: np.ndarray | None, role_edits: np.ndarray, segments: np.ndarray) -> StepPlan:
        windows: Sequence[np.ndarray] = [np.zeros(0, dtype=np.int64)] * self._n_micro_batches
        parts: Sequence[SentencePart | None] = [None] * self._n_micro_batches
        counts: dict[str, float] = {**dict.fromkeys(self.loss_weights, 0), **self._role_edits.counts(role_edits)}
        counts |= self._segmentation.counts(segments)
        samples = tokens = 0
        if self._n_windows:
            text = self._text.plan(step)
            windows, samples, tokens = text.micro_batches, text.samples, text.tokens
            counts["lm"] = tokens
        if self._sentences is not None and numbers is not None:
            parts = self._sentences.parts(numbers, self._n_micro_batches)
            found = self._sentences.counts(numbers)
            counts = {name: count + found.get(name, 0) for name, count in counts.items()}
            samples += len(numbers)
            tokens += int(self._sentences.train.token_counts[numbers].sum())
        shared = (np.array_split(numbers, self._n_micro_batches) for numbers in (role_edits, segments))
        pieces = zip(windows, parts, *shared, strict=True)
        return StepPlan([MicroBatch(step, *piece) for piece in pieces], counts, samples, tokens)

    def fetch(self, micro_batch: MicroBatch) -> Batch:
        """Windows as LanguageModelTask gives them, sentences as AnnotatedSentences does, and role edits."""
        batch = self._role_edits.fetch(micro_batch.role_edits) | self._segmentation.fetch(micro_batch.segments)
        if len(micro_batch.windows):
            batch |= self._text.fetch(micro_batch.windows)
        if self._sentences is not None and micro_batch.sentences is not None:
            batch |= self._sentences.read(self._sentences.train, micro_batch.sentences, micro_batch.step)
        return batch

    def loss_sums(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Each loss of `loss_weights`, summed over the micro-batch."""
        assert isinstance(model, StructuredLanguageModel)
        losses = self._role_edits.loss_sums(model, batch)
        if "tokens" in batch:
            losses |= self._text.loss_sums(model, batch)
        if self._sentences is not None:
            states = self._passes(model, batch)
            if states.lm_loss is not None:
                losses["lm"] = losses["lm"] + states.lm_loss if "lm" in losses else states.lm_loss
            if states.slot_types_BST is not None:
                losses["graph_object_aux"] = class_loss(states.slot_types_BST, slot_type_labels(batch))
            losses |= structure_losses(
                model.heads,
                states.words_BWD,
                states.chart_BWD,
                batch,
                names=self.loss_weights.keys(),
                none_weight=self._recipe.objective.srl.none_weight,
                core_roles=self._sentences.core_roles,
            )
        losses |= self._segmentation.loss_sums(model.segmenter, batch)
        return {name: losses[name] for name in self.loss_weights}

    def _passes(self, model: StructuredLanguageModel, batch: Batch) -> _SentenceStates:
        assert self._sentences is not None
        needs = self._sentences.needs
        words_BWD: Tensor | None = None
        causal_BWD: Tensor | None = None
        lm_loss: Tensor | None = None
        slot_types_BST: Tensor | None = None
        graphs = self._sentences.graphs
        if needs.causal:
            memory = graphs.memory_input(batch, full=False, training=model.training)
            result = model(batch["sentence_tokens"], memory=memory)
            causal_BWD = states_at(result.states_BLD, batch["last_token"])
            if "lm" in self.loss_weights:
                labels_N = batch["sentence_labels"].flatten()
                lm_loss = next_token_loss(result.states_BLD.flatten(0, 1), model.output_weight, labels_N)
        if needs.full:
            memory = graphs.memory_input(batch, full=True, training=model.training)
            result = model.full_pass(words_of(batch), memory)
            words_BWD, slot_types_BST = result.states_BLD, result.slot_types_BST
        if needs.causal_heads:
            words_BWD = causal_BWD
        chart_BWD = causal_BWD if needs.chart_scheme == "reduce-count" else words_BWD
        return _SentenceStates(words_BWD, chart_BWD, lm_loss, slot_types_BST)

    def evaluate(self, model: nn.Module, context: EvaluationContext) -> dict[str, float]:
        """The text's metrics (LanguageModelTask.evaluate) and `StructureCounts.metrics`, on the validation split.

        With evaluation.batches set, as many batches of sentences are read as of windows.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        metrics: dict[str, float] = {}
        if "lm" in self.loss_weights and self._corpus.split("val").n_tokens > 1:
            metrics |= self._text.evaluate(model, context)
        if self._sentences is not None and self._learned_structure:
            metrics |= self._count(model, "val", context).metrics(self._learned_structure)
        if self._role_edits.loss_weights:
            metrics |= measure_role_edits(model, self._recipe, self._corpus, context)
        return metrics | self._segmentation.evaluate(_segmenter_of(model), "val", context)

    @property
    def _learned_structure(self) -> set[str]:
        """The losses that train structure heads."""
        return self.loss_weights.keys() & set(LOSS_OF_WEIGHT.values())

    def report(self, model: nn.Module, split: str, context: EvaluationContext) -> dict[str, Any]:
        """The metrics of `evaluate` on the whole of a split, baselines ("majority"), and "confusion" by kind of label.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        found: dict[str, Any] = {}
        if "lm" in self.loss_weights and self._corpus.split(split).n_tokens > 1:
            found |= self._text.report(model, split, context)
        learned = self._learned_structure
        if self._sentences is not None and learned:
            reader, scheme = self._corpus.structure(split), self._recipe.objective.chart.scheme
            confusions = Confusions(reader, scheme)
            found |= self._count(model, split, context, confusions).metrics(learned)
            found["left_out_sentences"] = len(reader) - len(usable_sentences(reader, self._recipe.model.max_seq_len))
            found["majority"] = majority_baselines(self._sentences.train, reader, learned, scheme)
            found["confusion"] = confusions.tables()
        found |= self._segmentation.evaluate(_segmenter_of(model), split, context)
        if self._role_edits.loss_weights:
            found |= report_role_edits(model, self._recipe, self._corpus, split, context)
        if self._recipe.model.graph_object_memory.enabled and "lm" in self.loss_weights:
            found |= report_interventions(model, self._recipe, self._corpus, split, context)
        return found

    def _count(
        self, model: nn.Module, split: str, context: EvaluationContext, confusions: Confusions | None = None
    ) -> StructureCounts:
        """Counts over a split: all of it where confusions are collected, else as much as evaluation.batches says."""
        reader, scheme = self._corpus.structure(split), self._recipe.objective.chart.scheme
        batches = self._evaluation_batches(reader)

        def predict(reader: StructureReader, numbers: np.ndarray) -> tuple[PredictedStructure, list[SentenceArrays]]:
            return self.predict(model, reader, numbers, context)

        if confusions is None:
            return count_split(predict, reader, batches[: self._recipe.evaluation.batches or None], scheme, context)
        return count_split(predict, reader, batches, scheme, context, confusions.add)

    def predict(
        self, model: nn.Module, reader: StructureReader, numbers: np.ndarray, context: EvaluationContext
    ) -> tuple[PredictedStructure, list[SentenceArrays]]:
        """What the model says of some sentences of a split, and the sentences."""
        assert isinstance(model, StructuredLanguageModel) and self._sentences is not None
        gold = [reader.arrays(number) for number in numbers.tolist()]
        read = self._sentences.read(reader, SentencePart(numbers, True))
        batch = {name: value.to(context.device) for name, value in read.items()}
        with context.autocast(), torch.no_grad():
            states = self._passes(model, batch)
            predicted = predict_structure(
                model.heads,
                states.words_BWD,
                states.chart_BWD,
                batch["real"],
                learned=self.loss_weights,
                gold_predicates=predicates_of(gold),
                root_relation=reader.labels.known("relation", ROOT_RELATION),
            )
        return predicted, gold

    def _evaluation_batches(self, reader: StructureReader) -> list[np.ndarray]:
        """All sentences of a split that the model can take, in batches of like lengths, in a fixed random order."""
        usable = usable_sentences(reader, self._recipe.model.max_seq_len)
        if len(usable) == 0:
            return []
        size = max(self._recipe.batch.sentences // self._n_micro_batches, 1)
        lengths = padded_lengths(reader, causal=self._sentences is not None and self._sentences.needs.causal)
        batches = SentenceBatches(lengths, usable, sentences_per_batch=size, seed=self._recipe.run.seed)
        return [batches.batch(number) for number in range(batches.n_batches)]

    def config(self) -> dict[str, Any]:
        """The model's shape, the corpus's labels by their numbers, the token that ends a document, and what else an
        evaluation goes by: how graphs are read ("graph_object") and which role edits are asked ("role_edit")."""
        recipe = self._recipe
        graphs, role_edit = recipe.model.graph_object_memory, recipe.objective.role_edit
        segmentation = self._segmentation.config()
        return {
            "kind": self.kind,
            "model": self._model_config().to_dict(),
            "labels": self._labels(),
            "chart_scheme": recipe.objective.chart.scheme,
            "learned": list(self.loss_weights),
            "graph_object": {"seed": recipe.run.seed, **graphs.model_dump(include=_OF_GRAPHS)}
            if graphs.enabled
            else None,
            "role_edit": role_edit.model_dump(include=_OF_ROLE_EDITS) if self._role_edits.loss_weights else None,
            "end_of_text_id": self._corpus.end_of_text_id,
            **({"segmentation": segmentation} if segmentation is not None else {}),
        }

    def facts(self) -> dict[str, Any]:
        """Windows, tokens and sentences of the splits, and what they are not annotated with."""
        facts = self._text.facts() if self._n_windows else {}
        if self._sentences is not None:
            facts["annotated"] = self._sentences.fact()
        if self._lacking:
            found = ", ".join(f"{loss} (no sentence has {what})" for loss, what in self._lacking.items())
            facts["not learned"] = found
        return facts


@dataclass(frozen=True)
class _SentenceStates:
    """What the passes over annotated sentences give; None for what no loss asks for.

    Attributes:
        words_BWD: float, word states that the heads read.
        chart_BWD: float, those that chart items are read off.
        lm_loss: the next-token loss of the causal pass, a scalar.
        slot_types_BST: float, scores of the types of the graph's slots in the full pass.
    """

    words_BWD: Tensor | None
    chart_BWD: Tensor | None
    lm_loss: Tensor | None
    slot_types_BST: Tensor | None


def _segmenter_of(model: nn.Module) -> CharacterSegmenter | None:
    assert isinstance(model, StructuredLanguageModel)
    return model.segmenter


def _windows_alone(recipe: LMRecipe, n_windows: int, n_micro_batches: int) -> LMRecipe:
    """The recipe as LanguageModelTask reads it: its batch holds the windows of text only.

    Where there are none, the micro-batch's size still serves the evaluation.
    """
    if n_windows == 0:
        return recipe
    update = {"batch_size": n_windows, "micro_batch_size": n_windows // n_micro_batches}
    return recipe.model_copy(update={"batch": recipe.batch.model_copy(update=update)})

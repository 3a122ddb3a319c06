"""The task of answering queries over many small graphs: corpora of reasoning examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strata_core.corpus.graphs.corpus import GraphCorpus
from strata_core.corpus.graphs.example import N_STATUSES, Mode
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.errors import DataError, RecipeError
from strata_core.evaluation.reasoning import (
    Judged,
    Temperatures,
    breakdown,
    calibration_metrics,
    fit_temperatures,
    reasoning_metrics,
)
from strata_core.models.graphs.graph_reasoner import GraphReasoner, ReasonerConfig
from strata_core.models.graphs.reasoning_batch import ReasoningBatch
from strata_core.models.initialisation import initialise
from strata_core.randomness import derive_seed
from strata_core.recipes.graph import GRAPH_WEIGHTS, GraphRecipe
from strata_core.tasks.graph_queries.batches import Drawn, reasoning_arrays
from strata_core.tasks.graph_queries.evaluation import WIDTH, judge_batch, judged
from strata_core.tasks.graph_queries.losses import ReasoningLosses, freeze_unreached, loss_counts
from strata_core.training.order import SampleOrder
from strata_core.training.task import Batch, EvaluationContext, StepPlan

_WIDEST_BLOCK = 16


@dataclass(frozen=True)
class MicroBatch:
    """Examples of a split, and where in the run they stand.

    Attributes:
        split: its name.
        examples: int64 [B].
        step, position: the step, and the place of the first of them in its global batch; what is drawn goes by them.
    """

    split: str
    examples: np.ndarray
    step: int
    position: int


class GraphQueryTask:
    """Queries over graphs of their own, with all the losses that the recipe gives a weight.

    Where twins are compared, the order is one of blocks of consecutive examples, so that an example that lacks an edge
    and its supported twin are always in the same micro-batch; what is left at the end of the split, less than a block,
    is not trained on.
    """

    kind = "graph-reasoner"
    shapes_vary = True
    metric_directions: Mapping[str, str] = {
        "selection_score": "max",
        "loss": "min",
        "mrr": "max",
        "hits_at_1": "max",
        "hits_at_3": "max",
        "hits_at_10": "max",
        "accuracy": "max",
    }

    def __init__(self, recipe: GraphRecipe, corpus: GraphCorpus) -> None:
        """Takes the corpus as it is; `check` tells whether it serves."""
        table, model = recipe.objective, recipe.model
        weights = {name: float(getattr(table, name)) for name in GRAPH_WEIGHTS}
        self.loss_weights: Mapping[str, float] = {name: weight for name, weight in weights.items() if weight > 0}
        self.rate_factors: Mapping[str, float] = {"query_encoder.": recipe.optimizer.query_encoder_lr_scale}
        self._recipe = recipe
        self._corpus = corpus
        self._train = corpus.split("train")
        self._losses = ReasoningLosses(self.loss_weights, table.pair_margin_size)
        self._counts = loss_counts(self._train, self.loss_weights, table.relation_samples)
        self._block = _block_of_twins(self._train) if "pair_margin" in self.loss_weights else 1
        self.n_blocks = len(self._train) // self._block
        self._order = SampleOrder(max(self.n_blocks, 1), recipe.run.seed)
        self._shape = ReasonerConfig(
            n_relations=len(corpus.names.relations),
            n_node_types=len(corpus.names.node_types),
            d_model=model.d_model,
            message=model.message,
            message_rank=model.message_rank,
            n_heads=model.n_heads,
            dropout=model.dropout,
            inverse_edges=any(_walks_backwards(corpus, split) for split in corpus.info.splits),
            link_head=model.link_head,
            link_scale=model.link_scale,
            largest_number=table.max_count,
            on_policy_selection=table.on_policy_selection,
        )

    def check(self) -> None:
        """Refuses data that cannot fill a step or an evaluation, and twins that micro-batches would part.

        Raises:
            RecipeError: too few examples, no validation split where one is needed or one that the metric cannot be
                computed on, no question to learn from, a micro-batch that is no whole number of blocks, or a search
                that nothing teaches.
            DataError: an example asks for the label that relates two nodes.
        """
        recipe, place = self._recipe, self._corpus.path
        batch = recipe.batch
        for split in self._corpus.info.splits:
            _refuse_label_queries(self._corpus, split)
        if batch.micro_batch_size % self._block or batch.batch_size % self._block:
            raise RecipeError(
                f"batch.batch_size {batch.batch_size} in micro-batches of {batch.micro_batch_size} parts twins: in "
                f"{place} they stand in blocks of {self._block} examples",
                hint=f"make both multiples of {self._block}, or set objective.pair_margin = 0",
            )
        if self.n_blocks * self._block < batch.batch_size:
            raise RecipeError(
                f"the training split of {place} has {len(self._train):,} examples; one step takes batch.batch_size "
                f"{batch.batch_size}",
                hint="use more examples, or a smaller batch.batch_size",
            )
        if recipe.evaluation.every and not self._corpus.info.splits.get("val", {}).get("examples"):
            raise RecipeError(
                f"evaluation.every is {recipe.evaluation.every}, but {place} has no validation split",
                hint="prepare the corpus with one, or set evaluation.every = 0",
            )
        if "answer" in self.loss_weights:
            self._check_questions()
        if recipe.evaluation.every:
            self._check_metric()
        if recipe.objective.on_policy_selection and "next_hop" not in self.loss_weights:
            raise RecipeError(
                "objective.on_policy_selection is on and objective.next_hop is 0: nothing teaches the search",
                hint="give objective.next_hop a weight",
            )

    def _check_questions(self) -> None:
        """Refuses examples of which none asks anything; labels of whole graphs have no loss."""
        modes = np.asarray(self._corpus.split("train").arrays["modes"])
        if len(modes) and (modes == Mode.NOTHING).all():
            raise RecipeError(
                f"objective.answer has weight {self._recipe.objective.answer:g}, but none of the {len(modes):,} "
                f"training examples of {self._corpus.path} asks anything; labels of whole graphs are not learned",
                hint="give the examples queries, or set objective.answer = 0 to learn from nodes and edges alone",
            )

    @property
    def _evaluated_at_most(self) -> int:
        """Examples that an evaluation in the run reads, the first of the split; 0: all."""
        return self._recipe.evaluation.batches * self._recipe.batch.micro_batch_size

    def _check_metric(self) -> None:
        """Refuses a metric that the validation examples which are read do not yield."""
        metric, arrays = self._recipe.evaluation.metric, self._corpus.split("val").arrays
        read = slice(self._evaluated_at_most or None)
        modes, statuses = np.asarray(arrays["modes"][read]), np.asarray(arrays["statuses"][read])
        asks_for_nodes = modes == Mode.ENTITY
        place = f"evaluation.metric is {metric!r}, and of the {len(modes):,} validation examples of {self._corpus.path}"
        place += " that an evaluation reads"
        answered = np.diff(arrays["answer_offsets"])[read] > 0
        if (metric == "mrr" or metric.startswith("hits_at_")) and not (asks_for_nodes & answered).any():
            raise RecipeError(
                f"{place} {asks_for_nodes.sum():,} ask for nodes, none of them with an answer to rank",
                hint="choose another metric, such as selection_score, or more evaluation.batches (0: the whole split)",
            )
        if metric == "accuracy" and not (statuses < N_STATUSES).any():
            raise RecipeError(
                f"{place} 0 have a known status",
                hint="choose another metric, such as selection_score, or more evaluation.batches (0: the whole split)",
            )

    def build_model(self) -> GraphReasoner:
        """The model with its first weights, on the default device."""
        model = GraphReasoner(self._shape)
        initialise(model, self._recipe.run.seed)
        freeze_unreached(model, self.loss_weights, query_encoder=self._recipe.optimizer.freeze_query_encoder)
        return model

    def plan(self, step: int) -> StepPlan:
        """The blocks at the step's positions in the order, cut into micro-batches."""
        n_blocks = self._recipe.batch.batch_size // self._block
        blocks = self._order.samples(step * n_blocks, n_blocks)
        return self._plan_of((blocks[:, None] * self._block + np.arange(self._block)).ravel(), step)

    def worst_step(self) -> StepPlan:
        """The examples whose branches have most edges, all of them in each micro-batch."""
        batch = self._recipe.batch
        branches = np.maximum(np.diff(self._train.arrays["branch_offsets"]), 1)
        costs = branches * self._train.edge_counts * np.maximum(self._train.hop_counts, 1)
        worst = np.argsort(-costs, kind="stable")[: batch.micro_batch_size]
        return self._plan_of(np.resize(worst, batch.batch_size), 0)

    def _plan_of(self, examples: np.ndarray, step: int) -> StepPlan:
        size = self._recipe.batch.micro_batch_size
        return StepPlan(
            micro_batches=[
                MicroBatch("train", examples[start : start + size], step, start)
                for start in range(0, len(examples), size)
            ],
            counts={name: int(counts[examples].sum()) for name, counts in self._counts.items()},
            samples=len(examples),
            tokens=int(self._train.node_counts[examples].sum()),
        )

    def fetch(self, micro_batch: MicroBatch) -> Batch:
        """The tensors of a ReasoningBatch by name."""
        reader = self._train if micro_batch.split == "train" else self._corpus.split(micro_batch.split)
        places = range(micro_batch.position, micro_batch.position + len(micro_batch.examples))

        def keys(purpose: str) -> np.ndarray:
            seeds = [derive_seed(self._recipe.run.seed, purpose, micro_batch.step, place) for place in places]
            return np.array(seeds, dtype=np.uint64)

        drawn = None
        if self.loss_weights.keys() & {"link", "relation"}:
            drawn = Drawn(keys("link negatives"), keys("relation edges"), self._recipe.objective.relation_samples)
        arrays = reasoning_arrays(reader.batch(micro_batch.examples), drawn, inverse_edges=self._shape.inverse_edges)
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def loss_sums(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """The losses that have a weight, each summed over what it counts."""
        assert isinstance(model, GraphReasoner)
        return self._losses.sums(model, ReasoningBatch(**batch))

    def evaluate(self, model: nn.Module, context: EvaluationContext) -> dict[str, float]:
        """The metrics of evaluation.reasoning on the validation split, "accuracy" (of known statuses) and "loss".

        The temperatures are fitted on the way and kept in the model, so that a checkpoint has them. With
        evaluation.batches set only the first batches are read.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        assert isinstance(model, GraphReasoner)
        result, losses = self._judge(model, "val", context, self._evaluated_at_most)
        temperatures = fit_temperatures(result)
        with torch.no_grad():
            model.status_temperature.fill_(temperatures.status)
            model.confidence_temperature.fill_(temperatures.confidence)
        metrics = reasoning_metrics(result) | calibration_metrics(result, temperatures)
        loss = sum(self.loss_weights[name] * value for name, value in losses.items())
        if "status_accuracy" in metrics:
            metrics["accuracy"] = metrics["status_accuracy"]
        return {"loss": float(loss), **metrics}

    def report(self, model: nn.Module, split: str, context: EvaluationContext) -> dict[str, Any]:
        """Metrics, calibration before and after the model's own temperatures, and metrics by hops, status and mode.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        assert isinstance(model, GraphReasoner)
        result, losses = self._judge(model, split, context, 0)
        own = Temperatures(float(model.status_temperature), float(model.confidence_temperature))
        return {
            "examples": len(result.modes),
            "losses": losses,
            **reasoning_metrics(result),
            "temperature": {"status": own.status, "confidence": own.confidence},
            "calibration_before": calibration_metrics(result, Temperatures()),
            "calibration": calibration_metrics(result, own),
            **breakdown(result),
        }

    def _judge(
        self, model: GraphReasoner, split: str, context: EvaluationContext, limit: int
    ) -> tuple[Judged, dict[str, float]]:
        """What the model tells of a split's first examples (0: of all), and its losses there."""
        reader, size = self._corpus.split(split), self._recipe.batch.micro_batch_size
        size = max(size // self._block, 1) * self._block
        examples = np.arange(min(len(reader), limit) if limit else len(reader))
        starts = range(0, len(examples), size)
        rows = context.zeros(len(examples), WIDTH)
        sums = context.zeros(len(starts), len(self.loss_weights) + 1)
        for index in context.my_share(len(starts)):
            start = starts[index]
            fetched = self.fetch(MicroBatch(split, examples[start : start + size], 0, start))
            batch = {name: tensor.to(context.device) for name, tensor in fetched.items()}
            with torch.no_grad(), context.autocast():
                losses, told = self._judge_batch(model, ReasoningBatch(**batch))
            rows[start : start + size] = torch.from_numpy(told).to(rows)
            sums[index, :-1] = torch.stack([losses[name] for name in self.loss_weights]).to(sums)
            sums[index, -1] = len(fetched["pairs_Q2"])
        *totals, n_pairs = context.ranks.sum(sums.sum(dim=0)).tolist()
        of_examples = loss_counts(reader, self.loss_weights, self._recipe.objective.relation_samples)
        counts = {name: int(counted[examples].sum()) for name, counted in of_examples.items()}
        if "pair_margin" in counts:
            # Blocks are those of the training split, and a limit may cut the last one: some twins are not compared.
            counts["pair_margin"] = int(n_pairs)
        shares = {
            name: total / counts[name] if counts[name] else 0.0
            for name, total in zip(self.loss_weights, totals, strict=True)
        }
        return judged(reader, examples, context.ranks.sum(rows).tolist()), shares

    def _judge_batch(self, model: GraphReasoner, batch: ReasoningBatch) -> tuple[dict[str, Tensor], np.ndarray]:
        """The losses of a batch and what `judge_batch` tells of it, from one walk and one selection."""
        walk = model.walk(batch)
        selection = model.select(walk, batch, model.candidates(walk, batch))
        return self._losses.sums(model, batch, walk, selection), judge_batch(model, batch, walk, selection)

    def config(self) -> dict[str, Any]:
        """The model's shape, and the names of what its numbers stand for."""
        names = self._corpus.names
        return {
            "kind": self.kind,
            "model": self._shape.to_dict(),
            "relations": list(names.relations),
            "node_types": list(names.node_types),
        }

    def facts(self) -> dict[str, Any]:
        """Examples and sizes of the splits."""
        counts = self._train.counts
        return {
            "train": f"{len(self._train):,} examples over {counts['graphs']:,} graphs, {counts['edges']:,} edges",
            "validation": f"{self._corpus.info.splits.get('val', {}).get('examples', 0):,} examples",
        }


def _block_of_twins(reader: GraphReader) -> int:
    """The least number of consecutive examples such that every block of so many has both of each pair of twins.

    Raises:
        DataError: twins stand too far apart.
    """
    twins = np.asarray(reader.arrays["twins"])
    lacking = np.flatnonzero(twins >= 0)
    for block in range(1, _WIDEST_BLOCK + 1):
        if (lacking // block == twins[lacking] // block).all():
            return block
    raise DataError(
        f"twins stand more than {_WIDEST_BLOCK} examples apart, or across blocks of every size up to that",
        hint="put each example that lacks an edge beside its supported twin, or set objective.pair_margin = 0",
    )


def _refuse_label_queries(corpus: GraphCorpus, split: str) -> None:
    """Refuses a split with a query for the label that relates two nodes, which this task has no head for."""
    reader = corpus.split(split)
    wrong = np.flatnonzero(np.asarray(reader.arrays["modes"]) == Mode.RELATION)
    if len(wrong):
        raise DataError(
            f"{corpus.path}: {len(wrong):,} of the {len(reader):,} examples in split {split}, "
            f"{reader.example(int(wrong[0])).id} the first of them, ask for the label that relates two nodes; training "
            "examples ask for other things too, and labels would not be learned",
            hint="keep queries for labels in a corpus of their own, where all training examples ask for one",
        )


def _walks_backwards(corpus: GraphCorpus, split: str) -> bool:
    return bool((np.asarray(corpus.split(split).arrays["steps"]) >= len(corpus.names.relations)).any())

"""The task of telling the label between two nodes of a graph by composing the relations on the paths between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strata_core.corpus.graphs.corpus import GraphCorpus
from strata_core.corpus.graphs.example import Mode
from strata_core.errors import DataError, RecipeError
from strata_core.evaluation.voting import vote
from strata_core.models.graphs.path_composition import CompositionConfig, PathComposition
from strata_core.models.initialisation import initialise
from strata_core.objectives.composition import associativity_loss, closure_loss, composition_loss
from strata_core.recipes.graph import GraphRecipe
from strata_core.tasks.graph_settings import refuse_reasoner_settings
from strata_core.tasks.relation_prediction.batches import (
    CHAIN_LENGTHS,
    RelationReader,
    fixed_priorities,
    lay_out_paths,
    random_chains,
    training_priorities,
)
from strata_core.tasks.relation_prediction.composition_augmentation import (
    Equalities,
    Path,
    augmentation_draws,
    lengthened,
    proven_equalities,
)
from strata_core.training.order import SampleOrder
from strata_core.training.task import Batch, EvaluationContext, StepPlan

TRAINING_BRACKETINGS = 2
"""Random bracketings of each training path; associativity compares them."""

ALL_TESTS = "test"
"""What the tests of CLUTRR are called together."""

TEST_PREFIX = f"{ALL_TESTS}-"
LONG_TESTS = tuple(f"{TEST_PREFIX}{hops:02d}" for hops in range(5, 11))
"""The tests of CLUTRR whose mean accuracy is reported: longer than any training path."""


@dataclass(frozen=True)
class RelationMicroBatch:
    """Training examples by number, with their place.

    Attributes:
        step: number of the step.
        first: position of the first in the global batch.
        examples: int64 [B].
        longest: whether all possible replacements are made; for memory prediction.
    """

    step: int
    first: int
    examples: np.ndarray
    longest: bool = False


@dataclass(frozen=True)
class _Judged:
    """What was found out about the examples of a split, or of several; equal on every rank."""

    nats: float
    correct_by_hops: dict[int, int]
    count_by_hops: dict[int, int]

    @property
    def accuracy(self) -> float:
        return sum(self.correct_by_hops.values()) / sum(self.count_by_hops.values())


class RelationPredictionTask:
    """Labels between two nodes (Mode.RELATION), as in CLUTRR.

    An example is read as the paths from its first node to its second, found or given (model.paths): those of at most
    model.longest_path edges, the model.max_paths shortest. In training each path is composed along two random
    bracketings, which follow from the seed, the step and the position in the global batch; an evaluation averages over
    evaluation.bracketings fixed ones and over the paths.
    """

    kind = "path-composition"
    rate_factors: Mapping[str, float] = {}
    shapes_vary = True
    metric_directions: Mapping[str, str] = {"loss": "min", "accuracy": "max", "selection_score": "max"}

    def __init__(self, recipe: GraphRecipe, corpus: GraphCorpus) -> None:
        """Takes the corpus as it is; `check` tells whether there is enough of it.

        Raises:
            DataError: an example of the training split asks for something else than a label.
        """
        self._recipe = recipe
        self._corpus = corpus
        self._readers: dict[str, RelationReader] = {}
        self._train = self._reader("train")
        self._order = SampleOrder(max(len(self._train), 1), recipe.run.seed)
        objective = recipe.objective
        weights = {"answer": objective.answer, "associativity": objective.associativity, "closure": objective.closure}
        self.loss_weights: Mapping[str, float] = {name: weight for name, weight in weights.items() if weight}
        relations, targets = corpus.names.relations, corpus.names.targets
        self._relation_names = (*relations, *(name for name in targets if name not in relations))
        self._target_relations = torch.tensor([self._relation_names.index(name) for name in targets])
        self._shape = CompositionConfig(
            n_relations=len(self._relation_names) + 1,
            n_targets=len(targets),
            d_model=recipe.model.d_model,
            composition=recipe.model.composition,
            dropout=recipe.model.dropout,
        )
        self._n_chains = objective.random_chains if objective.associativity else 0
        self._equalities = self._proven() if objective.composition_augmentation else {}

    def _reader(self, split: str) -> RelationReader:
        if split not in self._readers:
            reader = self._corpus.split(split)
            others = np.flatnonzero(reader.arrays["modes"] != Mode.RELATION)
            if len(others):
                raise DataError(
                    f"{self._corpus.path}: example {reader.example(int(others[0])).id} of {split} asks for something "
                    "else than the label between two nodes",
                    hint="path composition is for corpora like CLUTRR, where every example asks for one",
                )
            model = self._recipe.model
            self._readers[split] = RelationReader(
                reader, given=model.paths == "given", longest_path=model.longest_path, max_paths=model.max_paths
            )
        return self._readers[split]

    def _proven(self) -> Equalities:
        relations = self._corpus.names.relations
        relation_of_target = {
            number: relations.index(name) for number, name in enumerate(self._corpus.names.targets) if name in relations
        }
        two_hops = np.flatnonzero(self._train.hops == 2)
        examples = ((self._train.paths(int(number)), int(self._train.targets[number])) for number in two_hops)
        return proven_equalities(examples, relation_of_target)

    def check(self) -> None:
        """Refuses data that cannot fill a step or an evaluation, and settings that do not serve it.

        Raises:
            RecipeError: fewer examples than one step takes, no validation split where one is needed, answers that are
                not learned, or settings of another model.
        """
        batch_size, place = self._recipe.batch.batch_size, self._corpus.path
        if len(self._train) < batch_size:
            raise RecipeError(
                f"the training split of {place} has {len(self._train)} examples; one step takes batch.batch_size "
                f"{batch_size}",
                hint="use a smaller batch.batch_size",
            )
        if self._recipe.evaluation.every and not self._corpus.info.splits.get("val", {}).get("examples"):
            raise RecipeError(
                f"evaluation.every is {self._recipe.evaluation.every}, but {place} has no validation split",
                hint="prepare the corpus with a validation share above 0, or set evaluation.every = 0",
            )
        if self._recipe.objective.answer == 0:
            raise RecipeError(
                "objective.answer is 0, and nothing else teaches the model to tell labels",
                hint="give objective.answer a weight",
            )
        refuse_reasoner_settings(self._recipe, place)

    def build_model(self) -> PathComposition:
        """The model with its first weights, on the default device."""
        model = PathComposition(self._shape)
        initialise(model, self._recipe.run.seed)
        return model

    def plan(self, step: int) -> StepPlan:
        """Examples at the step's positions in the order, cut into micro-batches."""
        size = self._recipe.batch.batch_size
        return self._plan_of(step, self._order.samples(step * size, size))

    def worst_step(self) -> StepPlan:
        """The examples with the most relations on their paths, lengthened as far as the recipe allows."""
        sizes = [sum(map(len, self._train.paths(number))) for number in range(len(self._train))]
        largest = np.argsort(sizes, kind="stable")[::-1][: self._recipe.batch.batch_size]
        return self._plan_of(0, largest.astype(np.int64), longest=True)

    def _plan_of(self, step: int, examples: np.ndarray, *, longest: bool = False) -> StepPlan:
        micro = self._recipe.batch.micro_batch_size
        return StepPlan(
            micro_batches=[
                RelationMicroBatch(step, start, examples[start : start + micro], longest)
                for start in range(0, len(examples), micro)
            ],
            counts=dict.fromkeys(self.loss_weights, len(examples)),
            samples=len(examples),
            tokens=int(self._train.hops[examples].sum()),
        )

    def fetch(self, micro_batch: RelationMicroBatch) -> Batch:
        """The tensors of `batches.lay_out_paths`, with two random bracketings of each path and random chain."""
        first, n_here = micro_batch.first, len(micro_batch.examples)
        paths = [self._train.paths(int(number)) for number in micro_batch.examples]
        replacements = self._recipe.objective.composition_augmentation
        if replacements:
            paths = self._lengthened(paths, micro_batch)
        seed, model = self._recipe.run.seed, self._recipe.model
        chains = random_chains(
            seed,
            micro_batch.step,
            range(first, first + n_here),
            batch_size=self._recipe.batch.batch_size,
            chains=self._n_chains,
            n_relations=len(self._corpus.names.relations),
        )
        longest = max(model.longest_path + replacements, *CHAIN_LENGTHS)
        shape = (n_here, model.max_paths + self._n_chains, TRAINING_BRACKETINGS, longest - 1)
        priorities = training_priorities(seed, micro_batch.step, first, shape)
        return self._lay_out(paths, self._train.targets[micro_batch.examples], priorities, chains)

    def _lengthened(self, paths: list[list[Path]], micro_batch: RelationMicroBatch) -> list[list[Path]]:
        positions = range(micro_batch.first, micro_batch.first + len(paths))
        replacements = self._recipe.objective.composition_augmentation
        draws = augmentation_draws(self._recipe.run.seed, micro_batch.step, positions, replacements)
        return [
            [lengthened(path, self._equalities, row, longest=micro_batch.longest) for path in of_example]
            for of_example, row in zip(paths, draws, strict=True)
        ]

    def _lay_out(
        self, paths: list[list[Path]], targets: np.ndarray, priorities: np.ndarray, chains: Sequence[list[Path]] = ()
    ) -> Batch:
        return lay_out_paths(
            paths, targets, priorities, no_path=len(self._relation_names), chains_B=chains if self._n_chains else ()
        )

    def loss_sums(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Each a sum over the examples: "answer" in nats, "associativity" and "closure" as mean squared distances."""
        assert isinstance(model, PathComposition)
        weights_P, examples_P = batch["path_weights"], batch["path_examples"]
        states_PVD, chains_CVD = _states(model, batch, n_chains=self._n_chains * batch["targets"].shape[0])
        losses = {"answer": composition_loss(model.scores(states_PVD), batch["targets"], examples_P, weights_P)}
        if "associativity" in self.loss_weights:
            losses["associativity"] = associativity_loss(states_PVD, weights_P)
            if self._n_chains:
                shares_C = weights_P.new_full(chains_CVD.shape[:1], 1 / self._n_chains)
                losses["associativity"] = losses["associativity"] + associativity_loss(chains_CVD, shares_C)
        if "closure" in self.loss_weights:
            named = self._target_relations.to(batch["targets"].device)[batch["targets"][examples_P]]
            losses["closure"] = closure_loss(states_PVD, model.relation_vectors(named), weights_P)
        return losses

    def evaluate(self, model: nn.Module, context: EvaluationContext) -> dict[str, float]:
        """ "loss" (nats an example), "accuracy", "accuracy_K" for graphs of K edges, on the validation split.

        "selection_score" is the probability that the right label has in the geometric mean, exp(-loss): accuracy alone
        soon stands still.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        judged = self._judge(model, "val", context, limit=self._recipe.evaluation.batches)
        n_examples = sum(judged.count_by_hops.values())
        loss = judged.nats / n_examples
        return {
            "selection_score": float(np.exp(-loss)),
            "loss": loss,
            "accuracy": judged.accuracy,
            **{f"accuracy_{hops}": share for hops, share in _shares(judged).items()},
        }

    def report(self, model: nn.Module, split: str, context: EvaluationContext) -> dict[str, Any]:
        """What an evaluation tells of one split, or of all tests of CLUTRR together ("test").

        Returns:
            "accuracy", "loss" (nats an example), "examples", "without_path", a table "by_hops"; "paths" and
            "composition_augmentation" as the recipe has them. For tests of CLUTRR also a table "tests" of all of them,
            and "mean_accuracy_5_to_10_hops" over those longer than training paths.

        Raises:
            UsageError: there is no such split.
            EvaluationStopped: a stop was requested meanwhile.
        """
        tests = self._tests()
        meant = tests if split == ALL_TESTS and split not in self._corpus.info.splits and tests else [split]
        judged = {name: self._judge(model, name, context) for name in meant}
        together, readers = _together(list(judged.values())), [self._reader(name) for name in meant]
        n_examples = sum(map(len, readers))
        found: dict[str, Any] = {
            "accuracy": together.accuracy,
            "loss": together.nats / n_examples,
            "examples": n_examples,
            "without_path": sum(not reader.paths(number) for reader in readers for number in range(len(reader))),
            "paths": self._recipe.model.paths,
            "composition_augmentation": self._recipe.objective.composition_augmentation,
            "by_hops": [
                {"hops": hops, "examples": together.count_by_hops[hops], "accuracy": share}
                for hops, share in _shares(together).items()
            ],
        }
        if meant[0] in tests:
            judged |= {name: self._judge(model, name, context) for name in tests if name not in judged}
            long = [judged[name].accuracy for name in LONG_TESTS if name in judged]
            found |= {"mean_accuracy_5_to_10_hops": float(np.mean(long))} if long else {}
            found["tests"] = [
                {"split": name, "examples": len(self._reader(name)), "accuracy": judged[name].accuracy}
                for name in tests
            ]
        return found

    def _tests(self) -> list[str]:
        """The splits "test-02", "test-03" and so on that have examples."""
        splits = self._corpus.info.splits
        return [name for name, split in splits.items() if name.startswith(TEST_PREFIX) and split["examples"]]

    def _judge(self, model: nn.Module, split: str, context: EvaluationContext, *, limit: int = 0) -> _Judged:
        assert isinstance(model, PathComposition)
        reader, size = self._reader(split), self._recipe.batch.micro_batch_size
        numbers = np.arange(len(reader))[: limit * size if limit else None]
        parts = [numbers[start : start + size] for start in range(0, len(numbers), size)]
        found = context.zeros(len(numbers), 2)
        for index in context.my_share(len(parts)):
            part = parts[index]
            found[part[0] : part[-1] + 1] = self._found(model, reader, part, context).to(found)
        nats, correct = np.array(context.ranks.sum(found).tolist()).reshape(-1, 2).T
        hops = reader.hops[numbers]
        lengths = [int(length) for length in np.unique(hops)]
        return _Judged(
            nats=float(nats.sum()),
            correct_by_hops={length: int(correct[hops == length].sum()) for length in lengths},
            count_by_hops={length: int((hops == length).sum()) for length in lengths},
        )

    def _found(
        self, model: PathComposition, reader: RelationReader, numbers: np.ndarray, context: EvaluationContext
    ) -> Tensor:
        """float32 [B, 2]: nats of the right label, and whether it is the likeliest."""
        shape = self._recipe.model
        fixed = fixed_priorities(self._recipe.evaluation.bracketings, shape.longest_path - 1)
        priorities = np.broadcast_to(fixed, (len(numbers), shape.max_paths, *fixed.shape))
        paths = [reader.paths(int(number)) for number in numbers]
        batch = self._lay_out(paths, reader.targets[numbers], priorities)
        batch = {name: tensor.to(context.device) for name, tensor in batch.items()}
        with context.autocast():
            scores_PVK = model.scores(_states(model, batch)[0])
        votes_BK = vote(scores_PVK, batch["path_examples"], batch["path_weights"], len(numbers))
        right_B = votes_BK.gather(1, batch["targets"][:, None])[:, 0]
        correct_B = votes_BK.argmax(dim=-1) == batch["targets"]
        return torch.stack([-right_B.clamp_min(torch.finfo(torch.float32).tiny).log(), correct_B.float()], dim=1)

    def config(self) -> dict[str, Any]:
        """The model's shape, what its relations and labels are called, and how examples are read and judged."""
        recipe = self._recipe
        return {
            "kind": self.kind,
            "model": self._shape.to_dict(),
            "paths": recipe.model.paths,
            "longest_path": recipe.model.longest_path,
            "max_paths": recipe.model.max_paths,
            "bracketings": recipe.evaluation.bracketings,
            "composition_augmentation": recipe.objective.composition_augmentation,
            "relations": list(self._relation_names),
            "targets": list(self._corpus.names.targets),
        }

    def facts(self) -> dict[str, Any]:
        """Examples and what augmentation rests on."""
        facts = {
            "train": f"{len(self._train):,} examples of {self._train.hops.min()} to {self._train.hops.max()} hops",
            "validation": f"{self._corpus.info.splits.get('val', {}).get('examples', 0):,} examples",
        }
        if self._recipe.objective.composition_augmentation:
            n_equalities = sum(len(pairs) for pairs in self._equalities.values())
            facts["augmentation"] = f"{n_equalities} two-hop paths that training data proves equal to one relation"
        return facts


def _states(model: PathComposition, batch: Batch, n_chains: int = 0) -> tuple[Tensor, Tensor]:
    """Of paths, float [P, V, D], and of chains, float [C, V, D]."""
    states_TD = model(batch["relations"], batch["pairs"], batch["roots"])
    n_paths = batch["path_examples"].shape[0]
    states = states_TD.unflatten(0, (n_paths + n_chains, -1))
    return states[:n_paths], states[n_paths:]


def _together(judged: Sequence[_Judged]) -> _Judged:
    """What was found out about the examples of several splits."""
    correct: Counter[int] = Counter()
    count: Counter[int] = Counter()
    for part in judged:
        correct.update(part.correct_by_hops)
        count.update(part.count_by_hops)
    return _Judged(sum(part.nats for part in judged), dict(correct), dict(sorted(count.items())))


def _shares(judged: _Judged) -> dict[int, float]:
    return {hops: judged.correct_by_hops[hops] / count for hops, count in judged.count_by_hops.items()}

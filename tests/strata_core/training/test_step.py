"""One step: the same gradients however the global batch is cut, losses divided once, parameters without a target."""

from typing import ClassVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from strata_core.models import LanguageModel, TransformerConfig, initialise
from strata_core.objectives.next_token import IGNORED, next_token_loss
from strata_core.training.distributed import ALONE
from strata_core.training.precision import choose_precision
from strata_core.training.step import TrainingStep
from strata_core.training.task import StepPlan

LENGTHS = [5, 17, 2, 31, 8, 8, 1, 24, 30, 3, 12, 19, 7, 27, 16, 4]
CPU = torch.device("cpu")


class UnequalSentences:
    """Sixteen sentences of unequal length, padded; the loss counts real labels only."""

    kind = "lm"
    loss_weights = {"lm": 1.0}
    rate_factors: ClassVar[dict[str, float]] = {}

    def __init__(self):
        rng = np.random.default_rng(3)
        self.sentences = [torch.from_numpy(rng.integers(0, 50, length + 1)) for length in LENGTHS]

    def build_model(self):
        model = LanguageModel(TransformerConfig(50, 16, 2, 2, 2, 32, 32))
        initialise(model, seed=5)
        return model

    def plan(self, micro_batch_size):
        ids = list(range(16))
        parts = [ids[start : start + micro_batch_size] for start in range(0, 16, micro_batch_size)]
        return StepPlan(parts, counts={"lm": sum(LENGTHS)}, samples=16, tokens=sum(LENGTHS))

    def fetch(self, ids):
        longest = max(LENGTHS[index] for index in ids)
        tokens = torch.zeros(len(ids), longest, dtype=torch.long)
        labels = torch.full((len(ids), longest), IGNORED)
        for row, index in enumerate(ids):
            sentence = self.sentences[index]
            tokens[row, : len(sentence) - 1] = sentence[:-1]
            labels[row, : len(sentence) - 1] = sentence[1:]
        return {"tokens": tokens, "labels": labels}

    def loss_sums(self, model, batch):
        states = model(batch["tokens"])
        return {"lm": next_token_loss(states.flatten(0, 1), model.output_weight, batch["labels"].flatten())}


def gradients(tiny_recipe, micro_batch_size, *settings):
    task = UnequalSentences()
    recipe = tiny_recipe("batch.batch_size=16", f"batch.micro_batch_size={micro_batch_size}", *settings)
    step = TrainingStep(task, task.build_model(), recipe, CPU, ALONE, choose_precision("fp32", CPU, force=False))
    plan = task.plan(micro_batch_size)
    sums = step.accumulate(plan, [task.fetch(part) for part in plan.micro_batches], step=0)
    return {name: parameter.grad for name, parameter in step.parameters.items()}, float(sums.sum()) / sum(LENGTHS)


@pytest.mark.parametrize("settings", [(), ("distributed.exact_reduction=true",)])
@pytest.mark.parametrize("micro_batch_size", [1, 2, 4, 8])
def test_cutting_the_global_batch_otherwise_leaves_the_gradient(tiny_recipe, micro_batch_size, settings):
    whole, whole_loss = gradients(tiny_recipe, 16, *settings)
    cut, cut_loss = gradients(tiny_recipe, micro_batch_size, *settings)
    assert cut_loss == pytest.approx(whole_loss, rel=1e-6)
    for name in whole:
        error = (cut[name] - whole[name]).norm() / whole[name].norm()
        assert error < 1e-6, name


def test_the_loss_is_the_mean_over_all_tokens_and_not_a_mean_of_means(tiny_recipe):
    task = UnequalSentences()
    model = task.build_model()
    nats = []
    for index in range(16):
        batch = task.fetch([index])
        scores = F.linear(model(batch["tokens"])[0], model.output_weight)
        nats.append(F.cross_entropy(scores, batch["labels"][0], reduction="sum").item())
    _, loss = gradients(tiny_recipe, 4)
    assert loss == pytest.approx(sum(nats) / sum(LENGTHS), rel=1e-6)
    assert loss != pytest.approx(np.mean([nat / length for nat, length in zip(nats, LENGTHS, strict=True)]), rel=1e-4)


class TwoLosses(UnequalSentences):
    """A second loss without any target in the batch (CASES T13 B)."""

    loss_weights = {"lm": 1.0, "arc": 1.0}
    rate_factors: ClassVar[dict[str, float]] = {}

    def plan(self, micro_batch_size):
        plan = super().plan(micro_batch_size)
        return StepPlan(plan.micro_batches, {"lm": sum(LENGTHS), "arc": 0}, 16, sum(LENGTHS))

    def loss_sums(self, model, batch):
        return {**super().loss_sums(model, batch), "arc": model.transformer.norm.weight.sum() * 0.0}


def test_a_loss_without_any_target_is_zero_and_leaves_the_total_finite(tiny_recipe):
    task = TwoLosses()
    recipe = tiny_recipe("batch.batch_size=16", "batch.micro_batch_size=4")
    step = TrainingStep(task, task.build_model(), recipe, CPU, ALONE, choose_precision("fp32", CPU, force=False))
    plan = task.plan(4)
    sums = step.accumulate(plan, [task.fetch(part) for part in plan.micro_batches], step=0)
    assert sums[:, 1].tolist() == [0.0] * 4
    assert all(torch.isfinite(parameter.grad).all() for parameter in step.parameters.values())


def test_gradients_are_clipped_to_the_global_norm_and_the_norm_reported_is_the_unclipped_one(tiny_recipe):
    task = UnequalSentences()
    recipe = tiny_recipe("batch.batch_size=16", "batch.micro_batch_size=4", "optimizer.grad_clip=0.25")
    step = TrainingStep(task, task.build_model(), recipe, CPU, ALONE, choose_precision("fp32", CPU, force=False))
    plan = task.plan(4)
    step.accumulate(plan, [task.fetch(part) for part in plan.micro_batches], step=0)
    before = {name: parameter.grad.clone() for name, parameter in step.parameters.items()}
    norm = sum(float(gradient.double().square().sum()) for gradient in before.values()) ** 0.5
    outcome = step.update(torch.tensor([4.0]), rate=1e-3, step=0)
    assert float(outcome["grad_norm"]) == pytest.approx(norm, rel=1e-5)
    assert norm > 0.25
    for name, parameter in step.parameters.items():
        # After one AdamW step the first moment is (1 - beta1) times the clipped gradient.
        clipped = before[name] * 0.25 / norm
        torch.testing.assert_close(step.optimizer.state[parameter]["exp_avg"], clipped * 0.1, rtol=1e-4, atol=1e-9)

"""Training the graph reasoner against one graph at a time and against PyTorch Geometric's RGCN, in one table.

Run: python benchmarks/graph.py [--rounds 5] [--batches 8] [--examples 3000]

RGCN needs torch_geometric (the extra `bench`).

Rows, in turn within each round, on the same generated examples, fetched beforehand:

- strata, a batch: forward, all losses and backward over block-diagonal batches, then the optimizer.
- one graph at a time: the same model and losses, an example in each forward and backward, one update a batch.
- strata's walk: the message passing alone, forward and backward, four steps over the examples' graphs.
- RGCN, FastRGCN: four layers of torch_geometric.nn.RGCNConv and FastRGCNConv of the same width over the same edges,
  forward and backward.

Columns: examples per second (median over rounds); how many times as fast strata is (median over rounds).
Below: where the time of a step of strata goes, in per cent.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from strata_core.models.graphs.relational_passing import Graphs, RelationalPassing
from strata_core.recipes import load_recipe
from strata_core.tasks.data import open_data
from strata_core.tasks.graph_queries.task import GraphQueryTask, MicroBatch
from strata_core.tasks.registry import make_task
from strata_core.training.optimizer import build_optimizer, set_rate, trainable_parameters
from strata_core.training.task import Batch

WIDTH, DEPTH = 64, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=8, help="batches in a round")
    parser.add_argument("--examples", type=int, default=3000, help="generated to train on")
    arguments = parser.parse_args()
    settings = [f"corpus.sample_examples={arguments.examples}", "corpus.sample_eval_examples=60"]
    # Twins are compared with each other, which one graph at a time cannot do.
    settings += ["objective.pair_margin=0", f"model.d_model={WIDTH}", "optimizer.warmup_ratio=0.05"]
    recipe = load_recipe("graph/synthetic", "graph", settings)
    task = make_task(recipe, open_data(recipe))
    assert isinstance(task, GraphQueryTask)
    bench = Bench(task, arguments.batches, recipe.batch.batch_size, recipe.optimizer)
    seconds: dict[str, list[float]] = {name: [] for name in bench.rows}
    for _ in range(arguments.rounds + 1):
        for name, row in bench.rows.items():
            started = time.perf_counter()
            row()
            seconds[name].append(time.perf_counter() - started)
    _show(seconds, arguments.batches * recipe.batch.batch_size)
    print("\n" + bench.where_the_time_goes())


class Bench:
    """The rows, over the same batches."""

    def __init__(self, task: GraphQueryTask, n_batches: int, batch_size: int, optimizer: Any) -> None:
        torch.manual_seed(0)
        self._task = task
        self._model = task.build_model()
        self._optimizer = build_optimizer(trainable_parameters(self._model), optimizer)
        set_rate(self._optimizer, 1e-4)
        plans = [task.plan(step).micro_batches[0] for step in range(n_batches)]
        self._batches = [task.fetch(plan) for plan in plans]
        self._singles = [
            [task.fetch(MicroBatch("train", plan.examples[i : i + 1], 0, 0)) for i in range(batch_size)]
            for plan in plans
        ]
        self._plans = plans
        self._graphs = [self._walk_input(batch) for batch in self._batches]
        config = self._model.config.passing()
        self._walk = RelationalPassing(config)
        self.rows: dict[str, Callable[[], None]] = {
            "strata, a batch": lambda: self._train([[batch] for batch in self._batches]),
            "one graph at a time": lambda: self._train(self._singles),
            "strata's walk": self._walks,
        }
        try:
            slow, fast = _rgcn(config.n_relations)
            self.rows |= {"RGCN": lambda: self._convolves(slow), "FastRGCN": lambda: self._convolves(fast)}
        except ImportError:
            print("torch_geometric is not installed: no RGCN row")

    def _train(self, steps: list[list[Batch]]) -> None:
        for micro_batches in steps:
            for batch in micro_batches:
                self._backward(self._task.loss_sums(self._model, batch))
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)

    def _backward(self, losses: dict[str, Tensor]) -> None:
        torch.stack([loss * self._task.loss_weights[name] for name, loss in losses.items()]).sum().backward()

    def _walk_input(self, batch: Batch) -> tuple[Graphs, Tensor, Tensor, Tensor]:
        owners = batch["node_examples_M"]
        n_examples = int(owners.max()) + 1
        states = torch.randn(len(owners), WIDTH)
        steps = torch.randn(DEPTH, n_examples, WIDTH)
        lengths = torch.full((n_examples,), DEPTH)
        return Graphs(batch["edges_F3"], batch["edge_examples_F"], owners), states, steps, lengths

    def _walks(self) -> None:
        for graphs, states, steps, lengths in self._graphs:
            mapped = self._walk.weights.map_query(steps)
            self._walk.states_by_step(states.clone().requires_grad_(), graphs, mapped, lengths)[-1].sum().backward()

    def _convolves(self, layers: nn.ModuleList) -> None:
        for graphs, states, _, _ in self._graphs:
            found = states.clone().requires_grad_()
            sources, relations, destinations = graphs.edges_E3.unbind(1)
            edges = torch.stack([sources, destinations])
            for layer in layers:
                found = torch.relu(layer(found, edges, relations))
            found.sum().backward()

    def where_the_time_goes(self) -> str:
        """Shares of fetching, forward with losses, backward and the optimizer in a step."""
        parts = dict.fromkeys(("fetch", "forward and losses", "backward", "optimizer"), 0.0)
        for plan in self._plans:
            marks = [time.perf_counter()]
            batch = self._task.fetch(plan)
            marks.append(time.perf_counter())
            losses = self._task.loss_sums(self._model, batch)
            marks.append(time.perf_counter())
            self._backward(losses)
            marks.append(time.perf_counter())
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            marks.append(time.perf_counter())
            for name, start, end in zip(parts, marks, marks[1:], strict=False):
                parts[name] += end - start
        total = sum(parts.values())
        return ", ".join(f"{name} {100 * share / total:.0f} %" for name, share in parts.items())


def _rgcn(n_relations: int) -> tuple[nn.ModuleList, nn.ModuleList]:
    from torch_geometric.nn import FastRGCNConv, RGCNConv

    kinds = (RGCNConv, FastRGCNConv)
    slow, fast = (nn.ModuleList(kind(WIDTH, WIDTH, n_relations) for _ in range(DEPTH)) for kind in kinds)
    return slow, fast


def _show(seconds: dict[str, list[float]], examples: int) -> None:
    """The first round warms up and is left out."""
    rounds = {name: values[1:] for name, values in seconds.items()}
    ours = {"one graph at a time": "strata, a batch", "RGCN": "strata's walk", "FastRGCN": "strata's walk"}
    print("| | examples/s | strata is |")
    print("| --- | --- | --- |")
    for name, values in rounds.items():
        ratio = ""
        if name in ours:
            ratios = [other / own for own, other in zip(rounds[ours[name]], values, strict=True)]
            ratio = f"{statistics.median(ratios):.2f} x"
        print(f"| {name} | {examples / statistics.median(values):,.0f} | {ratio} |")


if __name__ == "__main__":
    main()

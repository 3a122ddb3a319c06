"""Whatever a plan proposes is a recipe that its rules and its corpus accept, and that trains as the one asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata_core.corpus.generators.reasoning import SPLITS, ReasoningSettings
from strata_core.corpus.graphs.corpus import GraphCorpus, open_graph_corpus
from strata_core.corpus.graphs.preparation import prepare_reasoning_corpus
from strata_core.corpus.reading import Corpus
from strata_core.errors import RecipeError
from strata_core.memory_fit import MemoryPlan
from strata_core.memory_fit.prediction import predict_memory
from strata_core.recipes import load_recipe
from strata_core.recipes.tables import TrainingRecipe
from strata_core.tasks.registry import make_task
from tests.strata_core.memory_fit.stand_ins import language_model_task, recipe
from tests.strata_core.tasks.link_prediction.test_task import ring_triples, write_corpus
from tests.strata_core.tasks.sentence_structure.treebank_corpus import make_corpus, small_recipe

PLENTY_BYTES = 2**50

Load = Callable[..., TrainingRecipe]


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("treebank"))


@pytest.fixture(scope="module")
def reasoning(tmp_path_factory: pytest.TempPathFactory) -> GraphCorpus:
    """Examples in blocks of three: a supported one and its two twins."""
    folder = tmp_path_factory.mktemp("reasoning") / "corpus"
    prepare_reasoning_corpus(folder, ReasoningSettings(n_examples=dict.fromkeys(SPLITS[:3], 90)))
    return open_graph_corpus(folder)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> GraphCorpus:
    return open_graph_corpus(write_corpus(tmp_path_factory.mktemp("ring"), ring_triples()))


def loader_of_graphs(corpus: GraphCorpus, folder: Path, batch_size: int) -> Load:
    file = folder / "graph.toml"
    file.write_text(f'kind = "graph"\n[corpus]\npath = "{corpus.path}"\n[model]\nd_model = 16\nmessage_rank = 8\n')
    # Following each of the objectives takes its time; the margin between twins is what matters here.
    few = [f"objective.{name}=0.0" for name in ("node", "link", "next_hop", "relation", "path_alignment", "count")]

    def load(*settings: str) -> TrainingRecipe:
        return load_recipe(file, "graph", [f"batch.batch_size={batch_size}", *few, *settings])

    return load


def planned(load: Load, corpus: Any, *settings: str, budget_bytes: int = PLENTY_BYTES) -> MemoryPlan:
    return predict_memory(
        lambda changed: make_task(changed, corpus),
        load(*settings),
        device_type="cpu",
        device_memory_bytes=budget_bytes,
    )


def peaks(load: Load, corpus: Any, sizes: tuple[int, ...], *settings: str) -> dict[int, int]:
    return {
        size: planned(load, corpus, *settings, f"batch.micro_batch_size={size}").predicted_peak_bytes for size in sizes
    }


def accepted(load: Load, corpus: Any, plan: MemoryPlan, *settings: str) -> list[TrainingRecipe]:
    """The recipe of each remedy, as a person gets it by `--set`; raises where strata refuses it."""
    found = []
    for remedy in plan.remedies:
        changed = load(*settings, *(f"{key}={value}" for key, value in remedy.changes.items()))
        make_task(changed, corpus).check()
        found.append(changed)
    return found


def test_micro_batches_that_windows_cannot_be_shared_by_are_not_tried(treebank: Corpus) -> None:
    """Of 12 rows 4 are windows: 1, 2 or 4 micro-batches can share them, which hold 12, 6 or 3 rows."""

    def load(*settings: str) -> TrainingRecipe:
        return small_recipe(treebank, "objective.ud.arc=0.4", *settings)

    known = peaks(load, treebank, (12, 6, 3))
    for budget_bytes in (known[12] - 1, min(known.values()) - 1):
        plan = planned(load, treebank, budget_bytes=budget_bytes)
        fitting = [size for size, peak in known.items() if peak <= budget_bytes]
        assert plan.largest_micro_batch_size == max(fitting, default=0)
        accepted(load, treebank, plan)


def test_no_remedy_parts_twins_or_recomputes_what_graphs_cannot(reasoning: GraphCorpus, tmp_path: Path) -> None:
    load = loader_of_graphs(reasoning, tmp_path, 12)
    known = peaks(load, reasoning, (12, 6, 3))
    assert known[3] < known[6] < known[12]
    for size, smaller in ((12, 6), (6, 3)):
        plan = planned(load, reasoning, budget_bytes=known[size] - 1)
        assert plan.largest_micro_batch_size == smaller
        (changed,) = accepted(load, reasoning, plan)
        assert changed.batch.micro_batch_size == smaller
    plan = planned(load, reasoning, budget_bytes=known[3] - 1)
    assert (plan.largest_micro_batch_size, plan.remedies) == (0, ())


def test_the_micro_batch_asked_for_may_itself_be_refused(reasoning: GraphCorpus, tmp_path: Path) -> None:
    load = loader_of_graphs(reasoning, tmp_path, 12)
    parting = "batch.micro_batch_size=4"
    with pytest.raises(RecipeError, match="parts twins"):
        make_task(load(parting), reasoning).check()
    assert planned(load, reasoning, parting).largest_micro_batch_size == 12


def test_what_the_data_refuse_whatever_the_micro_batch_is_still_planned(reasoning: GraphCorpus, tmp_path: Path) -> None:
    load = loader_of_graphs(reasoning, tmp_path, 96)
    with pytest.raises(RecipeError, match=r"one step takes batch\.batch_size 96"):
        make_task(load(), reasoning).check()
    known = peaks(load, reasoning, (96, 48))
    assert planned(load, reasoning, budget_bytes=known[96] - 1).largest_micro_batch_size == 48


def test_a_micro_batch_remedy_asks_the_same_queries_of_a_knowledge_graph(ring: GraphCorpus, tmp_path: Path) -> None:
    load = loader_of_graphs(ring, tmp_path, 16)
    asked = "batch.micro_batch_size=8"
    plan = planned(load, ring, asked)
    assert plan.largest_micro_batch_size == 8, "16 queries would be of one relation, where 8 and 8 are asked for"
    plan = planned(load, ring, asked, budget_bytes=plan.predicted_peak_bytes - 1)
    assert plan.remedies[0].changes == {"batch.micro_batch_size": 4, "batch.relation_group_size": 8}
    (changed,) = accepted(load, ring, plan, asked)
    for step in range(3):
        groups = [make_task(each, ring).plan(step).micro_batches for each in (load(asked), changed)]
        before, after = (np.concatenate([group.asked for group in parts]) for parts in groups)
        assert before.tolist() == after.tolist()


def test_accumulation_that_a_static_graph_excludes_is_not_tried() -> None:
    """Two ranks with 4 examples each: any smaller micro-batch would make several a rank."""
    settings = recipe(distributed__static_graph=True)

    def plan(budget_bytes: int) -> MemoryPlan:
        return predict_memory(
            language_model_task, settings, device_type="cpu", world_size=2, device_memory_bytes=budget_bytes
        )

    whole = plan(PLENTY_BYTES)
    assert whole.largest_micro_batch_size == 4
    tight = plan(whole.predicted_peak_bytes - 1)
    assert tight.largest_micro_batch_size == 0
    assert not any("batch.micro_batch_size" in remedy.changes for remedy in tight.remedies)


def test_a_remedy_says_which_way_the_passes_change() -> None:
    """With exact sums many micro-batches hold more partial sums than one large one holds activations."""
    settings = recipe(
        distributed__exact_reduction=True, batch__micro_batch_size=1, batch__seq_len=4, model__max_seq_len=4
    )
    whole = predict_memory(language_model_task, settings, device_type="cpu", device_memory_bytes=PLENTY_BYTES)
    plan = predict_memory(
        language_model_task,
        settings,
        device_type="cpu",
        device_memory_bytes=whole.predicted_peak_bytes - 1,
    )
    assert plan.remedies[0].changes == {"batch.micro_batch_size": 8}
    assert "fewer, larger passes" in plan.remedies[0].text

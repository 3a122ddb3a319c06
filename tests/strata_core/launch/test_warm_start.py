"""Weights of a run whose numbers stand for something else, or whose parts are others."""

import json

import pytest
from safetensors.torch import save_file
from torch import nn

from strata_core.corpus.graphs.jsonl_preparation import prepare_graph_lines_corpus
from strata_core.errors import RecipeError
from strata_core.launch.starting import train
from strata_core.launch.warm_start import load_weights
from strata_core.observer import Observer
from strata_core.recipes import load_recipe

RECIPE = """kind = "graph"
[model]
d_model = 8
message_rank = 4
[objective]
pair_margin = 0.0
[batch]
batch_size = 4
num_workers = 0
[run]
max_steps = 2
[optimizer]
warmup_steps = 1
[evaluation]
every = 0
[corpus]
path = "corpus"
"""


def recipe_over(folder, relations, node_types, *settings):
    """A tiny recipe over a corpus of graphs with these names."""
    record = {
        "num_nodes": 2,
        "node_types": node_types,
        "edges": [[0, name, 1] for name in relations],
        "query": {"branches": [{"start": 0, "steps": relations[:1]}]},
        "status": "supported",
        "answers": [1],
    }
    folder.mkdir()
    (folder / "graphs.jsonl").write_text("".join(json.dumps(record | {"id": f"g{n}"}) + "\n" for n in range(8)))
    prepare_graph_lines_corpus(folder / "graphs.jsonl", folder / "corpus", val_fraction=0)
    (folder / "recipe.toml").write_text(RECIPE)
    return load_recipe(folder / "recipe.toml", "graph", settings)


def test_a_warm_start_with_other_relations_or_node_types_is_refused_with_the_numbers(tmp_path):
    train(recipe_over(tmp_path / "first", ["a", "b"], ["x", "y"]), tmp_path / "run", device="cpu")
    start = f"run.warm_start={str(tmp_path / 'run')!r}"
    train(recipe_over(tmp_path / "same", ["a", "b"], ["x", "y"], start), tmp_path / "goes-on", device="cpu")
    relations = recipe_over(tmp_path / "relations", ["b", "c"], ["x", "y"], start)
    with pytest.raises(RecipeError, match="trained for other relations than the corpus has") as raised:
        train(relations, tmp_path / "refused", device="cpu")
    assert raised.value.problems == (
        "relations: 2 here, 2 in the checkpoint; only the corpus has c; only the checkpoint has a",
    )
    both = recipe_over(tmp_path / "both", ["b", "c"], ["x", "z"], start)
    with pytest.raises(RecipeError, match="other relations and node types than") as raised:
        train(both, tmp_path / "refused", device="cpu")
    assert len(raised.value.problems) == 2 and not (tmp_path / "refused").exists()


class Notices(Observer):
    def __init__(self):
        self.texts = []

    def notice(self, text):
        self.texts.append(text)


def test_a_part_missing_on_either_side_is_named_with_what_becomes_of_it(tmp_path):
    plain, taught = nn.ModuleDict({"body": nn.Linear(2, 2)}), nn.ModuleDict({"body": nn.Linear(2, 2)})
    taught["heads"] = nn.Linear(2, 2)
    for name, model in (("plain", plain), ("taught", taught)):
        save_file(model.state_dict(), tmp_path / name)
    notices = Notices()
    load_weights(taught, tmp_path / "plain", observer=notices)
    load_weights(plain, tmp_path / "taught", observer=notices)
    assert notices.texts == [
        f"run.warm_start {tmp_path / 'plain'}: heads is not in it: starts from its initial weights",
        f"run.warm_start {tmp_path / 'taught'}: heads is ignored: this model has none",
    ]

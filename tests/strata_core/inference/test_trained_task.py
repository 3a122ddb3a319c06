"""A trained model on data that may not be its own."""

from strata_core.inference.trained_task import model_differences


def test_of_models_of_other_kinds_only_the_kinds_are_told():
    ours = {"kind": "knowledge-graph", "model": {"layers": 3}, "entities": 4}
    theirs = {"kind": "graph-reasoner", "model": {"d_model": 16}, "node_types": ["person"]}
    assert model_differences(ours, theirs) == [
        "such a corpus is for a model of one knowledge graph; the checkpoint is a reasoner over many graphs"
    ]

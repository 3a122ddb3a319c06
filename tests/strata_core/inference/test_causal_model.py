from types import SimpleNamespace

import pytest
import torch

from strata_core.errors import UsageError
from strata_core.inference import language_model
from strata_core.inference.causal_model import open_causal_model


def test_models_of_graphs_are_refused_by_name(monkeypatch, tmp_path):
    checkpoint = SimpleNamespace(path=tmp_path, tokenizer=None)
    trained = SimpleNamespace(config={"kind": "graph-reasoner"}, checkpoint=checkpoint)
    monkeypatch.setattr(language_model, "find_trained", lambda *_, **__: trained)
    monkeypatch.setattr(language_model, "trained_model", lambda *_: torch.nn.Linear(1, 1))
    with pytest.raises(UsageError, match="is a graph-reasoner model of graphs, which knows no text"):
        open_causal_model(tmp_path, device="cpu")

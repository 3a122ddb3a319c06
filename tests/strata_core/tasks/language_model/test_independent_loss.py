"""The validation loss a run reports, against the same model written once more in numpy."""

import json

import pytest

from strata_core.launch.starting import train
from tests.strata_core.tasks.language_model.numpy_language_model import validation_loss


@pytest.mark.parametrize("settings", [(), ("model.n_heads=4", "model.n_kv_heads=2", "model.tie_embeddings=false")])
def test_the_reported_validation_loss_is_that_of_an_independent_implementation(
    tiny_recipe, tmp_path, byte_corpus, settings
):
    recipe = tiny_recipe("evaluation.every=12", "model.d_model=32", *settings)
    result = train(recipe, tmp_path / "run", device="cpu")
    reported = json.loads((tmp_path / "run" / "evaluations.jsonl").read_text())
    loss, bits_per_byte = validation_loss(tmp_path / "run" / "checkpoints" / "latest", byte_corpus, seq_len=32)
    assert reported["loss"] == pytest.approx(loss, rel=1e-5)
    assert reported["bits_per_byte"] == pytest.approx(bits_per_byte, rel=1e-5)
    assert result["best"]["value"] == reported["loss"]

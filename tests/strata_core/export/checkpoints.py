"""Checkpoints of tiny language models with a tokenizer, and their logits."""

import json

import torch
from safetensors.torch import save_file

from strata_core.corpus.text.tokenizer import train_tokenizer
from strata_core.manifest import Manifest, hash_files
from strata_core.models import LanguageModel, TransformerConfig, initialise
from strata_core.training.checkpoint import model_tensors
from strata_core.training.progress import Progress, TrainerState

TOKENIZER = train_tokenizer(["the old dog sees the small bird under the river"] * 3, 270)
VOCABULARY = 1 + max(json.loads(TOKENIZER)["model"]["vocab"].values())


def shape(**changes):
    values = {
        "vocab_size": VOCABULARY,
        "d_model": 16,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 2,
        "d_ff": 24,
        "max_seq_len": 12,
        "rope_theta": 500.0,
        "norm_eps": 1e-4,
    }
    return TransformerConfig(**(values | changes))


def made(model, seed=7):
    """The model with random weights large enough that mistakes show."""
    initialise(model, seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1 and parameter.std() < 0.1:
                parameter.mul_(8)
            elif parameter.ndim == 1:
                parameter.add_(torch.linspace(-0.3, 0.3, len(parameter)))
    return model.eval()


def write_checkpoint(folder, model, kind="lm", tokenizer=TOKENIZER):
    """A checkpoint folder of its own, without a run."""
    folder.mkdir(parents=True)
    config = {"kind": kind, "model": model.config.to_dict(), "end_of_text_id": 0}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "trainer.json").write_text(json.dumps(TrainerState(Progress(step=3)).to_json()))
    save_file(
        {name: tensor.contiguous() for name, tensor in model_tensors(model).items()}, folder / "model.safetensors"
    )
    save_file({}, folder / "optimizer.safetensors")
    if tokenizer is not None:
        (folder / "tokenizer.json").write_bytes(tokenizer)
    names = sorted(path.name for path in folder.iterdir())
    Manifest("checkpoint", tuple(hash_files(folder, names)), record={"step": 3}).write(folder)
    return folder


def language_model(**changes):
    return made(LanguageModel(shape(**changes)))


@torch.no_grad()
def logits(model, tokens):
    result = model(torch.tensor([tokens]))
    states = result if isinstance(result, torch.Tensor) else result.states_BLD
    return (states @ model.output_weight.T)[0]

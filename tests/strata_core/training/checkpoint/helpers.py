"""A small state that is a function of the step alone, so that any checkpoint's content can be foretold."""

import hashlib
from pathlib import Path

import torch

from strata_core.manifest import Parent
from strata_core.observer import SILENT
from strata_core.training.checkpoint import CheckpointState, CheckpointStore

RUN = Parent("run", "ab" * 32, "../..")


def make_state(step, *, rows=7):
    weights = torch.arange(rows * 5, dtype=torch.float32).view(rows, 5) + step
    return CheckpointState(
        config={"kind": "lm", "model": {"d_model": 5}},
        model={"weight": weights, "bias": torch.full((5,), 0.1 * step)},
        optimizer={
            "weight.exp_avg": weights / 3,
            "weight.exp_avg_sq": weights**2,
            "weight.step": torch.tensor(float(step)),
        },
        trainer={"progress": {"step": step}, "best": 0.1 + step},
        tokenizer=b'{"model": "stand-in"}',
        parents=(RUN,),
    )


def open_store(folder, *, keep_last=3, keep_every=0, **callbacks):
    return CheckpointStore(Path(folder), keep_last=keep_last, keep_every=keep_every, observer=SILENT, **callbacks)


def save_steps(folder, steps, **options):
    store = open_store(folder, **options)
    for step in steps:
        store.save(step, make_state(step))
    store.wait()
    return store


def tree(folder):
    """Every file below a folder with the digest of its content, and every link with its target."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder"
    return found


def assert_holds_step(loaded, step):
    expected = make_state(step)
    for tensors, wanted in ((loaded.model, expected.model), (loaded.optimizer, expected.optimizer)):
        assert tensors.keys() == wanted.keys()
        for name, tensor in wanted.items():
            assert tensors[name].dtype == tensor.dtype
            assert torch.equal(tensors[name], tensor)
    assert loaded.config == expected.config
    assert loaded.trainer == expected.trainer
    assert loaded.tokenizer == expected.tokenizer
    assert loaded.parents == expected.parents

"""Checkpoints written by the libraries people use: inspected correctly, with the totals those libraries report.

Each test is skipped where its library is not installed; they are extras of nobody's installation here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strata_core.audit import Report, inspect_checkpoint

torch = pytest.importorskip("torch")


def listed(report: Report) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {tensor.name: (f"torch.{tensor.element_type.name}", tensor.shape) for tensor in report.tensors}


def described(state: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (str(tensor.dtype), tuple(tensor.shape)) for name, tensor in state.items()}


def tiny_model() -> Any:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=100, n_positions=16)
    return transformers.GPT2LMHeadModel(config)


def test_a_model_that_transformers_saved(tmp_path: Path) -> None:
    model = tiny_model()
    model.save_pretrained(tmp_path / "m")
    report = inspect_checkpoint(tmp_path / "m", stats=True)
    assert report.reasons() == []
    assert report.totals["parameters"] == model.num_parameters()
    assert report.settings["n_embd"] == 32
    assert "transformers_version" in report.versions


def test_shards_that_transformers_saved(tmp_path: Path) -> None:
    model = tiny_model()
    model.save_pretrained(tmp_path / "m", max_shard_size="40KB")
    report = inspect_checkpoint(tmp_path / "m")
    assert report.verdict == "ok"
    assert report.format == "sharded"
    assert len(report.files) > 1
    assert report.totals["parameters"] == model.num_parameters()


def test_a_checkpoint_of_the_transformers_trainer(tmp_path: Path) -> None:
    model = tiny_model()
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    rows = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(4)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=2, save_steps=2, per_device_train_batch_size=2, use_cpu=True, report_to=[]
    )
    transformers.Trainer(model=model, args=arguments, train_dataset=rows).train()
    report = inspect_checkpoint(tmp_path / "checkpoint-2")
    verdicts = {file["path"]: file["verdict"] for file in report.files}
    assert verdicts.pop("training_args.bin") == "unknown-global"
    assert set(verdicts.values()) == {"ok"}
    assert report.verdict == "unknown-global"
    assert report.step == 2
    assert report.totals["parameters"] == model.num_parameters()
    assert report.optimizer is not None
    assert report.optimizer["kinds"]["exp_avg"] == sum(1 for _ in model.parameters())


def test_a_checkpoint_of_lightning(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):  # type: ignore[name-defined, misc]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.layer = torch.nn.Linear(width, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            return self.layer(batch).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters())

    trainer = lightning.Trainer(
        max_steps=2, accelerator="cpu", logger=False, default_root_dir=tmp_path, enable_progress_bar=False
    )
    module = Module(4)
    trainer.fit(module, torch.utils.data.DataLoader(torch.randn(4, 4), batch_size=2))
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    report = inspect_checkpoint(tmp_path / "x.ckpt", stats=True)
    assert report.verdict in ("ok", "unknown-global")
    assert report.step == 2
    assert report.totals["parameters"] == sum(parameter.numel() for parameter in module.parameters())
    assert report.settings == {"width": 4}
    assert "pytorch-lightning_version" in report.versions


def test_a_state_of_accelerate(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(3, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer)
    model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
    accelerator.backward(model(torch.ones(3)).sum())
    optimizer.step()
    accelerator.save_state(str(tmp_path / "s"))
    report = inspect_checkpoint(tmp_path / "s", stats=True)
    assert report.reasons() == []
    assert report.totals["parameters"] == 16
    assert {file["path"] for file in report.files} >= {"model.safetensors", "optimizer.bin", "random_states_0.pkl"}


def test_a_file_of_safetensors(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    state = {"w": torch.randn(3, 4), "h": torch.ones(2).half(), "b": torch.ones(2).bfloat16(), "i": torch.arange(3)}
    library.save_file(state, tmp_path / "x")
    assert listed(inspect_checkpoint(tmp_path / "x")) == described(state)


def test_a_folder_of_torch_distributed_checkpoint(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as distributed

    model = torch.nn.Linear(5, 3)
    distributed.save({"model": model.state_dict()}, checkpoint_id=str(tmp_path / "c"), no_dist=True)
    report = inspect_checkpoint(tmp_path / "c")
    metadata = distributed.FileSystemReader(str(tmp_path / "c")).read_metadata()
    assert report.verdict == "ok"
    assert {tensor.name: tensor.shape for tensor in report.tensors} == {
        name: tuple(entry.size) for name, entry in metadata.state_dict_metadata.items()
    }

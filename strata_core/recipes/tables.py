"""The tables that recipes of all kinds of training share: every setting with its meaning, unit and bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from strata_core.recipes.settings import LARGEST_INTEGER, Table, derived, folder_or_file, setting, table


class CorpusTable(Table):
    """What the model is trained on."""

    path: Path | None = folder_or_file("Corpus made by `strata prepare-corpus`; wins over `sample`.")
    sample: str | None = setting(None, "Built-in sample, prepared into a cache on first use.")


class OptimizerTable(Table):
    """AdamW, its schedule (linear warm-up, then cosine) and its guards."""

    lr: float = setting(6e-4, "Peak learning rate.", gt=0)
    min_lr: float = setting(6e-5, "Learning rate at the end of the cosine; at most lr.", gt=0)
    warmup_steps: int = setting(
        10, "Linear warm-up to the peak; below run.max_steps.", unit="steps", ge=0, le=LARGEST_INTEGER
    )
    warmup_ratio: float | None = setting(
        None, "Warm-up as a share of the schedule, in place of warmup_steps.", ge=0, lt=1
    )
    schedule_steps: int = derived(
        "Length of warm-up and cosine together; kept when a resume raises run.max_steps.",
        otherwise="run.max_steps",
        unit="steps",
        ge=1,
        le=LARGEST_INTEGER,
    )
    weight_decay: float = setting(0.1, "Decoupled decay of tensors with two or more dimensions.", ge=0)
    beta1: float = setting(0.9, "Decay of the first moment.", ge=0, lt=1)
    beta2: float = setting(0.95, "Decay of the second moment.", ge=0, lt=1)
    eps: float = setting(1e-8, "Added to the root of the second moment.", gt=0)
    grad_clip: float = setting(1.0, "Largest global gradient norm; 0 turns clipping off.", ge=0)
    skip_grad_norm: float | None = setting(
        None,
        "Skip an update whose gradient norm, unclipped, is above this many recent medians; absent: never.",
        unit="times the median",
        gt=1,
    )
    average_decay: float = setting(
        0.0,
        "Decay of a running average of the weights, which is what is then evaluated and saved; 0: no average.",
        ge=0,
        lt=1,
    )
    nonfinite_limit: int = setting(
        3, "Non-finite updates in a row after which the run stops.", unit="updates", ge=1, le=LARGEST_INTEGER
    )


class BatchTable(Table):
    """How much is read for one optimizer step, and in what pieces."""

    batch_size: int = setting(16, "Examples in one optimizer step, over all ranks.", unit="examples", ge=1, le=2**31)
    micro_batch_size: int = derived(
        "Examples in one forward pass; divides batch_size.",
        otherwise="batch_size",
        unit="examples",
        ge=1,
        le=2**31,
    )
    num_workers: int = setting(
        2, "Threads that read batches ahead; 0 reads in the loop.", unit="threads", ge=0, le=1024
    )


class RunTable(Table):
    """Length, seed and numerics of the run."""

    seed: int = setting(1234, "Seed of everything random.", ge=0, le=LARGEST_INTEGER)
    max_steps: int = setting(100, "Optimizer steps.", unit="steps", ge=1, le=LARGEST_INTEGER)
    precision: Literal["bf16", "fp16", "fp32"] = setting("bf16", "Autocast type on CUDA; other devices run in fp32.")
    force_precision: bool = setting(False, "Use the precision on a CPU too, where it is usually far slower.")
    initial_loss_scale: float = setting(65536.0, "First loss scale under fp16.", ge=1)
    compile: bool = setting(False, "Compile the model with torch.compile.")
    deterministic: bool = setting(False, "Ask for deterministic kernels; whether they could be had is recorded.")
    log_every: int = setting(
        10,
        "Steps between records in metrics.jsonl; the last step always has one.",
        unit="steps",
        ge=1,
        le=LARGEST_INTEGER,
    )
    warm_start: Path | None = folder_or_file("Checkpoint, run or Llama folder whose weights the model starts from.")


class EvaluationTable(Table):
    """Measurement on the validation split while training."""

    every: int = setting(0, "Steps between evaluations; 0: none.", unit="steps", ge=0, le=LARGEST_INTEGER)
    batches: int = setting(
        0,
        "Batches of the validation split in one evaluation; 0: all of it.",
        unit="batches",
        ge=0,
        le=LARGEST_INTEGER,
    )
    metric: str = setting("loss", "What the best checkpoint is chosen by.")
    min_delta: float = setting(0.0, "Smallest gain of the metric that counts as better.", ge=0)
    patience: int = setting(
        0,
        "Evaluations without improvement after which the run stops; 0: off.",
        unit="evaluations",
        ge=0,
        le=LARGEST_INTEGER,
    )


class CheckpointTable(Table):
    """When the run is saved and which saves are kept."""

    every: int = setting(0, "Steps between checkpoints; 0: the final one only.", unit="steps", ge=0, le=LARGEST_INTEGER)
    keep_last: int = setting(
        3, "Newest checkpoints kept; the best is kept besides.", unit="checkpoints", ge=1, le=2**31
    )
    keep_every: int = setting(
        0,
        "Checkpoints at multiples of this step are kept for good; 0: none.",
        unit="steps",
        ge=0,
        le=LARGEST_INTEGER,
    )


class DistributedTable(Table):
    """How ranks work together."""

    static_graph: bool = setting(False, "Tell DistributedDataParallel that every step uses the same parameters.")
    find_unused_parameters: bool = setting(False, "Let DistributedDataParallel look for unused parameters.")
    exact_reduction: bool = setting(False, "Sum gradients in one fixed tree: the same last bit on 1, 2, 4, 8 ranks.")
    use_fsdp: bool = setting(False, "Always refused: data parallelism here replicates the full state on each rank.")
    timeout_seconds: int = setting(
        600, "How long a rank waits for the others before the run fails.", unit="seconds", ge=1, le=86400
    )


class MemoryTable(Table):
    """What is traded for memory."""

    recompute: Literal["none", "blocks"] = setting("none", "Activations computed again in the backward pass.")


class TrainingRecipe(Table):
    """A training run of either kind; the kinds narrow the tables that differ."""

    kind: str = setting("", "What the recipe makes.")
    base: str | None = setting(None, "Another recipe, by name or path, whose settings this one starts from.")
    description: str = setting("", "One line on what the recipe is for.")
    corpus: CorpusTable = table()
    model: Table = table()
    objective: Table = table()
    optimizer: OptimizerTable = table()
    batch: BatchTable = table()
    run: RunTable = table()
    evaluation: EvaluationTable = table()
    checkpoint: CheckpointTable = table()
    distributed: DistributedTable = table()
    memory: MemoryTable = table()

"""A small run with everything that a run can hold, and the corpus it was trained on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from strata_core.manifest import FileEntry, Manifest, Parent, hash_file, hash_files

STEPS = (100, 200, 300)
CHECKPOINT_FILES = ("config.json", "model.safetensors", "optimizer.safetensors", "tokenizer.json", "trainer.json")
LOGS = ("events.jsonl", "metrics.jsonl", "run.log")


@dataclass(frozen=True)
class Chain:
    """Where the made folders are."""

    corpus: Path
    run: Path

    def checkpoint(self, step: int) -> Path:
        return self.run / f"checkpoints/step-{step:08d}"

    def rewrite(self, folder: Path, **changes: object) -> None:
        """Writes a folder's manifest again with other values, as somebody who knows the format would."""
        manifest = Manifest.read(folder)
        values = {name: changes.get(name, getattr(manifest, name)) for name in manifest.__dataclass_fields__}
        Manifest(**values).write(folder)


def entry_dict(entry: FileEntry) -> dict[str, object]:
    return {"path": entry.path, "size": entry.size, "sha256": entry.sha256}


def build_chain(folder: Path, *, final: bool = True) -> Chain:
    corpus, run = folder / "corpus", folder / "run"
    _write(corpus, {name: f"content of {name} ".encode() * 40 for name in ("corpus.json", "train-00000.bin")})
    _write(corpus, {"structure/heads.bin": bytes(range(256)), "empty.idx": b""})
    names = ["corpus.json", "train-00000.bin", "structure/heads.bin", "empty.idx"]
    corpus_manifest = Manifest("corpus", files=tuple(hash_files(corpus, names)), record={"kind": "text"})
    corpus_manifest.write(corpus)

    _write(run, {"recipe.toml": b"[run]\nseed = 1\n", "overrides.toml": b"[run]\nmax_steps = 300\n"})
    _write(
        run,
        {name: f"a line of {name}\n".encode() * 20 for name in LOGS} | {".lock": b"", "logs/rank-1.log": b"hello\n"},
    )
    manifest = Manifest(
        "run",
        files=(hash_file(run / "recipe.toml", name="recipe.toml"),),
        parents=(Parent("corpus", corpus_manifest.digest, "../corpus"),),
        record={"seed": 1, "learning_rate": 6e-4},
        times={"started": "2025-01-01T00:00:00+00:00", "seconds": 12.5},
    )
    checkpoints = [_write_checkpoint(run, step, manifest.digest) for step in STEPS]
    os.symlink("step-00000300", run / "checkpoints/latest")
    os.symlink("step-00000200", run / "checkpoints/best")
    state = {
        "final": final,
        "logs": [entry_dict(entry) for entry in hash_files(run, LOGS)],
        "files": [entry_dict(hash_file(run / "overrides.toml", name="overrides.toml"))],
        "checkpoints": checkpoints,
        "links": {"latest": "step-00000300", "best": "step-00000200"},
    }
    values = {name: getattr(manifest, name) for name in manifest.__dataclass_fields__}
    Manifest(**{**values, "state": state}).write(run)
    return Chain(corpus, run)


def _write_checkpoint(run: Path, step: int, run_digest: str) -> dict[str, str]:
    name = f"checkpoints/step-{step:08d}"
    contents = {file: f"{file} at step {step}\n".encode() * 30 for file in CHECKPOINT_FILES}
    _write(run / name, {**contents, "données-é.txt": b"accented"})
    files = hash_files(run / name, [*CHECKPOINT_FILES, "données-é.txt"])
    manifest = Manifest("checkpoint", files=tuple(files), parents=(Parent("run", run_digest, "../.."),))
    manifest.write(run / name)
    return {"path": name, "digest": manifest.digest}


def _write(folder: Path, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

"""`strata export`: a trained language model in a format of others."""

from __future__ import annotations

from strata_cli.display.figures import bytes_text
from strata_cli.display.output import write_json, write_text
from strata_cli.display.progress import shown_progress
from strata_cli.display.streams import printable
from strata_core.errors import PlaceTakenError, UsageError
from strata_core.files import expand_path
from strata_core.memory_fit.sizes import parse_bytes
from strata_core.training.checkpoint_choice import check_choice


def export(
    path: str,
    *,
    to: str,
    out: str,
    dtype: str | None,
    max_shard_size: str,
    start_from: str | None,
    json_output: bool,
    quiet: bool,
) -> int:
    """Exports the model at a path into a new folder, and prints what was written.

    Args:
        path: a run, a checkpoint, or a folder of a Llama.
        to: "hf" or "gguf".
        out: the folder to make.
        dtype: "float32", "float16", "bfloat16"; None: as the weights are stored.
        max_shard_size: most bytes of weights in one file, such as "5GB".
        start_from: which checkpoint of a run; None: the best, or the latest where there is no best.
        json_output: print one JSON object.
        quiet: show warnings and errors only.

    Returns:
        0.
    """
    if start_from is not None:
        check_choice(start_from)
    shard_bytes = parse_bytes(max_shard_size)
    where, target = expand_path(path), expand_path(out)
    if not where.exists():
        raise UsageError(f"{where}: no such file or directory", hint="name a run directory, or a checkpoint in one")
    if target.exists():
        raise PlaceTakenError(f"{target} exists already", hint="choose another place; nothing is overwritten")
    from strata_core.export.exporting import export_model
    from strata_core.training.trained import BEST_OR_LATEST

    with shown_progress(quiet=quiet or json_output) as observer:
        result = export_model(
            where,
            target,
            format=to,
            dtype=dtype,
            max_shard_bytes=shard_bytes,
            choose=start_from or BEST_OR_LATEST,
            observer=observer,
        )
    if json_output:
        write_json(result)
    else:
        write_text(f"{printable(result['out'])}: {len(result['files'])} files, {bytes_text(result['bytes'])}")
        if result["left_behind"]:
            write_text(f"left behind: {', '.join(result['left_behind'])}")
    return 0

"""The subcommands and their options. Whatever takes time to import is imported by the command that needs it."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from strata_cli import completion, corpus_options
from strata_cli.replay_option import ReplayCommand

_SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="strata",
    help="Train language models and graph reasoners, and leave nothing to trust on faith.",
    context_settings=_SETTINGS,
    pretty_exceptions_enable=False,
    epilog="Results go to standard output, everything else to standard error. See a command's --help.",
)
recipes = typer.Typer(help="Find, explain, copy and check recipes.", context_settings=_SETTINGS, no_args_is_help=False)
app.add_typer(recipes, name="recipes")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show warnings and errors only.")]
RunDir = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="The run directory; must not exist. Default: runs/NAME-N."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved recipe and the memory plan, and stop.")]
Device = Annotated[Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Where to train.")]
DeviceMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory of the device, such as 80GiB, in place of what is free here; with --dry-run it need not be here.",
    ),
]
Nproc = Annotated[
    str,
    typer.Option(metavar="N|auto", help="Ranks on this machine; auto is one for each GPU.", rich_help_panel="Launch"),
]
Nnodes = Annotated[int, typer.Option(metavar="N", help="Machines of the run.", rich_help_panel="Launch")]
RdzvEndpoint = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Where the machines meet, on the first of them.", rich_help_panel="Launch"),
]
MaxRestarts = Annotated[
    int,
    typer.Option(
        metavar="N", help="Start again from the newest checkpoint when a rank dies.", rich_help_panel="Launch"
    ),
]


def _recipe_option(names: Callable[[str], list[str]]) -> Any:
    return typer.Option(
        metavar="NAME_OR_PATH",
        help="A shipped recipe's name or a TOML file; see `strata recipes list`.",
        autocompletion=names,
    )


def _set_option(keys: Callable[[str], list[str]]) -> Any:
    return typer.Option(
        metavar="KEY=VALUE",
        help="Change a setting of the recipe; may be given many times. An empty value is the default.",
        autocompletion=keys,
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        from strata_cli.display.output import write_text
        from strata_core import __version__

        write_text(f"strata {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def strata(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback with an error; also after the subcommand.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        context.get_help()
        raise typer.Exit(2)


@app.command("prepare-corpus", short_help="Text, treebanks or graphs into a corpus with splits and a manifest.")
def prepare_corpus(
    out: corpus_options.Out,
    inputs: corpus_options.Inputs = None,
    sample: corpus_options.Sample = None,
    recipe: corpus_options.Recipe = None,
    sample_sentences: corpus_options.SampleSentences = None,
    sample_seed: corpus_options.SampleSeed = None,
    roles: corpus_options.Roles = None,
    vocab_size: corpus_options.VocabSize = None,
    tokenizer: corpus_options.Tokenizer = None,
    text_key: corpus_options.TextKey = None,
    val_fraction: corpus_options.ValFraction = None,
    shard_tokens: corpus_options.ShardTokens = None,
    workers: corpus_options.Workers = None,
    backend: corpus_options.Backend = None,
    on_error: corpus_options.OnError = None,
    format: corpus_options.Format = None,
    columns: corpus_options.Columns = None,
    sample_examples: corpus_options.SampleExamples = None,
    sample_eval_examples: corpus_options.SampleEvalExamples = None,
    sample_longest_hops: corpus_options.SampleLongestHops = None,
    sample_doubtful_share: corpus_options.SampleDoubtfulShare = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Turn text, JSONL, treebanks, .gz or .zst of these, graphs, or a built-in sample into a corpus directory."""
    from strata_cli.commands.prepare_corpus import prepare_corpus as command

    settings: dict[str, Any] = {
        "inputs": inputs or None,
        "sample": sample,
        "sample_sentences": sample_sentences,
        "sample_seed": sample_seed,
        "roles": roles or None,
        "vocab_size": vocab_size,
        "tokenizer": tokenizer,
        "text_key": text_key,
        "val_fraction": val_fraction,
        "shard_tokens": shard_tokens,
        "on_error": on_error,
        "format": format,
        "columns": tuple(columns.split(",")) if columns is not None else None,
        "sample_examples": sample_examples,
        "sample_eval_examples": sample_eval_examples,
        "sample_longest_hops": sample_longest_hops,
        "sample_doubtful_share": sample_doubtful_share,
    }
    if recipe is not None:
        from strata_cli.commands.corpus_recipe import with_recipe

        settings = with_recipe(recipe, settings)
    inputs = settings.pop("inputs", None) or []
    options = {**settings, "workers": workers, "backend": backend}
    return command(inputs, out=out, options=options, json_output=json, quiet=quiet)


@app.command("train-lm", short_help="Train a language model as a recipe says.")
def train_lm(
    recipe: Annotated[str, _recipe_option(completion.lm_recipes)],
    out: RunDir = None,
    set: Annotated[list[str] | None, _set_option(completion.lm_keys)] = None,
    device: Device = "auto",
    device_memory: DeviceMemory = None,
    nproc: Nproc = "1",
    nnodes: Nnodes = 1,
    rdzv_endpoint: RdzvEndpoint = None,
    max_restarts: MaxRestarts = 0,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Train a language model into a run directory that `strata resume` can go on with."""
    from strata_cli.commands.train import train
    from strata_cli.commands.training import LaunchOptions

    launching = LaunchOptions(device, device_memory, nproc, nnodes, rdzv_endpoint, max_restarts)
    return train("lm", recipe, out, set or [], launching=launching, dry_run=dry_run, json_output=json, quiet=quiet)


@app.command("train-graph", short_help="Train a graph reasoner as a recipe says.")
def train_graph(
    recipe: Annotated[str, _recipe_option(completion.graph_recipes)],
    out: RunDir = None,
    set: Annotated[list[str] | None, _set_option(completion.graph_keys)] = None,
    device: Device = "auto",
    device_memory: DeviceMemory = None,
    nproc: Nproc = "1",
    nnodes: Nnodes = 1,
    rdzv_endpoint: RdzvEndpoint = None,
    max_restarts: MaxRestarts = 0,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Train a graph reasoner into a run directory that `strata resume` can go on with."""
    from strata_cli.commands.train import train
    from strata_cli.commands.training import LaunchOptions

    launching = LaunchOptions(device, device_memory, nproc, nnodes, rdzv_endpoint, max_restarts)
    return train("graph", recipe, out, set or [], launching=launching, dry_run=dry_run, json_output=json, quiet=quiet)


@app.command(short_help="Go on with a run from a checkpoint.")
def resume(
    run_dir: Annotated[
        str, typer.Argument(metavar="RUN_DIR", help="A run directory.", autocompletion=completion.run_directories)
    ],
    start_from: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="latest|best|STEP",
            help="Which checkpoint to go on from.",
            autocompletion=completion.checkpoints,
        ),
    ] = "latest",
    set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Change a setting that cannot alter the past, such as run.max_steps upward.",
            autocompletion=completion.resumable_keys,
        ),
    ] = None,
    device: Device = "auto",
    device_memory: DeviceMemory = None,
    nproc: Nproc = "1",
    nnodes: Nnodes = 1,
    rdzv_endpoint: RdzvEndpoint = None,
    max_restarts: MaxRestarts = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Go on with a run; one that is finished is left as it is."""
    from strata_cli.commands.resume import resume as command
    from strata_cli.commands.training import LaunchOptions

    launching = LaunchOptions(device, device_memory, nproc, nnodes, rdzv_endpoint, max_restarts)
    return command(run_dir, start_from, set or [], launching=launching, json_output=json, quiet=quiet)


Trained = Annotated[
    str,
    typer.Argument(
        metavar="RUN_OR_CHECKPOINT",
        help="A run directory, or a step's folder in its checkpoints.",
        autocompletion=completion.run_directories,
    ),
]
WhichCheckpoint = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="latest|best|STEP",
        help="Which checkpoint of a run. Default: the best, or the latest where there is none.",
        autocompletion=completion.checkpoints,
    ),
]
ComputeDevice = Annotated[Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Where to compute.")]


@app.command(short_help="Measure a trained model on a split of a corpus.")
def evaluate(
    path: Trained,
    corpus: Annotated[
        str | None, typer.Option(metavar="DIR", help="A corpus in place of the one it was trained on.")
    ] = None,
    split: Annotated[
        str,
        typer.Option(metavar="NAME", help="Which part of the corpus.", autocompletion=completion.splits),
    ] = "val",
    start_from: WhichCheckpoint = None,
    device: ComputeDevice = "auto",
    confusion: Annotated[bool, typer.Option("--confusion", help="Also show which label was taken for which.")] = False,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="blimp|zorro|syntaxgym|FILE",
            help="A suite of grammar in place of a split.",
            rich_help_panel="Suites",
        ),
    ] = None,
    suite_path: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where the suite's files are.", rich_help_panel="Suites")
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(metavar="OTHER", help="Another model, compared on the same suite.", rich_help_panel="Suites"),
    ] = None,
    min_count: Annotated[
        int | None,
        typer.Option(metavar="N", help="Only pairs of words that the corpus has N times.", rich_help_panel="Suites"),
    ] = None,
    count_corpus: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The corpus whose words --min-count counts.", rich_help_panel="Suites"),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Measure a run's checkpoint on a split, or on a suite; the weights are verified before they are used."""
    counted = {"min_count": min_count, "count_corpus": count_corpus}
    asked: dict[str, Any] = {"suite_path": suite_path, "compare": compare, **counted}
    if suite is not None or any(value is not None for value in asked.values()):
        from strata_cli.commands.evaluate_suite import evaluate_suite

        if corpus is not None or confusion or split != "val":
            raise typer.BadParameter("--corpus, --split and --confusion are for evaluations on a split")
        return evaluate_suite(path, suite, **asked, start_from=start_from, device=device, json_output=json, quiet=quiet)
    from strata_cli.commands.evaluate import evaluate as command

    return command(
        path,
        start_from=start_from,
        corpus=corpus,
        split=split,
        device=device,
        confusion=confusion,
        json_output=json,
        quiet=quiet,
    )


@app.command(short_help="Annotations or answers for new input.")
def predict(
    path: Trained,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Text, CoNLL-U, or JSON Lines of queries about graphs; - is standard input."
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where the result goes; must not exist. In .conllup, roles have columns. Default: standard output.",
        ),
    ] = None,
    format: Annotated[
        Literal["auto", "text", "tokens", "conllu", "jsonl"],
        typer.Option(help="What FILE holds: a sentence a line, the same cut into words at spaces, CoNLL-U, queries."),
    ] = "auto",
    start_from: WhichCheckpoint = None,
    device: ComputeDevice = "auto",
    quiet: Quiet = False,
) -> int:
    """Annotate sentences as CoNLL-U, or answer queries about graphs as JSON Lines, with a trained model."""
    from strata_cli.commands.predict import predict as command

    return command(path, file, out=out, format=format, start_from=start_from, device=device, quiet=quiet)


@app.command(short_help="Text that a language model goes on with.")
def generate(
    path: Trained,
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT]...", help="Texts to go on with; - is the lines of standard input."),
    ] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always take the likeliest token.")] = False,
    temperature: Annotated[float, typer.Option(metavar="T", help="Below 1 keeps closer to what is likely.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Choose among the K likeliest tokens.")] = None,
    top_p: Annotated[
        float, typer.Option(metavar="P", help="Choose among the fewest tokens that have probability P together.")
    ] = 1.0,
    min_p: Annotated[
        float, typer.Option(metavar="P", help="Choose among tokens at least P times as probable as the likeliest.")
    ] = 0.0,
    repetition_penalty: Annotated[
        float, typer.Option(metavar="X", help="Above 1 makes tokens that have occurred less likely.")
    ] = 1.0,
    max_new_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens of a continuation.")] = 128,
    samples: Annotated[int, typer.Option(metavar="N", help="Continuations of each prompt.")] = 1,
    stop: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="End before this text; may be given many times.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed and prompt give the same text.")] = 0,
    start_from: WhichCheckpoint = None,
    device: ComputeDevice = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Continue texts with a language model; without a prompt it begins a document."""
    from strata_cli.commands.generate import generate as command

    sampling = {"greedy": greedy, "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    return command(
        path,
        prompts or [],
        sampling={**sampling, "repetition_penalty": repetition_penalty},
        settings={"max_new_tokens": max_new_tokens, "samples": samples, "stops": tuple(stop or ()), "seed": seed},
        start_from=start_from,
        device=device,
        json_output=json,
        quiet=quiet,
    )


@app.command("inspect-ckpt", short_help="What a checkpoint holds, and whether it is whole and safe to load.")
def inspect_ckpt(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A checkpoint file or folder of any kind, or a run.")],
    stats: Annotated[
        bool, typer.Option("--stats", help="Read all elements too: NaN, Inf, ranges, norms, checksums.")
    ] = False,
    diff: Annotated[
        str | None, typer.Option(metavar="OTHER", help="Another checkpoint to compare the tensors with.")
    ] = None,
    tensors: Annotated[
        str | None, typer.Option(metavar="GLOB", help="List the tensors whose names match, such as '*.weight'.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on classes outside the known-good list as well.")
    ] = False,
    bom: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a CycloneDX 1.6 bill of materials of a sound run or checkpoint."),
    ] = None,
    format: Annotated[
        Literal["text", "json", "sarif"],
        typer.Option(help="How to print what was found; SARIF 2.1.0 is what code hosts show."),
    ] = "text",
    json: Json = False,
) -> int:
    """Look into a checkpoint without loading it: nothing is unpickled, and no tensor is read but with --stats."""
    from strata_cli.commands.inspect_ckpt import inspect_ckpt as command

    output = "json" if json else format
    return command(path, stats=stats, diff=diff, tensors=tensors, strict=strict, output=output, bom=bom)


@app.command(
    "verify-manifest",
    cls=ReplayCommand,
    short_help="Find any changed, missing or added file of a run, checkpoint or corpus.",
)
def verify_manifest(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A run, checkpoint, corpus, manifest or SHA256SUMS.")],
    quick: Annotated[bool, typer.Option("--quick", help="Compare sizes only.")] = False,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay",
            metavar="[STEP]",
            help="Train a run again from one checkpoint to the next, aside, and compare: up to STEP's, or the last.",
        ),
    ] = None,
    signature: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Hold PATH, any folder or file, against this signature too."),
    ] = None,
    public_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="The key whose owner has to have signed, as PEM.")
    ] = None,
    cert_chain: Annotated[
        str | None, typer.Option(metavar="FILE", help="Certificates you trust to name who signed, as PEM.")
    ] = None,
    attest: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write an in-toto statement of what was verified; must not exist."),
    ] = None,
    statement: Annotated[
        Literal["replay", "slsa"] | None,
        typer.Option(help="What it states: a replay besides, or SLSA provenance: how it came to be."),
    ] = None,
    json: Json = False,
) -> int:
    """Hash files again, follow the chain of manifests, and report every fault in one pass."""
    from strata_cli.commands.attest import AttestOptions
    from strata_cli.commands.verify_manifest import SignatureOptions
    from strata_cli.commands.verify_manifest import verify_manifest as command

    options = SignatureOptions(signature, public_key, cert_chain)
    asked = AttestOptions(attest, statement)
    return command(path, quick=quick, replay=replay, json_output=json, options=options, attest=asked)


@app.command("compare", short_help="Find where two runs of one recipe part, and which of them is right.")
def compare(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="A run.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="Another run of the same recipe.")],
    json: Json = False,
) -> int:
    """Compare records and checkpoints of two runs; where they differ, train that stretch of both again."""
    from strata_cli.commands.compare import compare as command

    return command(run_a, run_b, json_output=json)


@app.command("sign", short_help="Sign a folder or a file, for those who do not have strata too.")
def sign(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A run, checkpoint, corpus, any folder, or a file.")],
    key: Annotated[str, typer.Option(metavar="FILE", help="The private key: P-256, P-384 or P-521, as PEM.")],
    cert: Annotated[
        str | None, typer.Option(metavar="FILE", help="The key's certificate and those above it, as PEM.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="The signature; must not exist. Default: NAME.sig, here.")
    ] = None,
    json: Json = False,
) -> int:
    """Write a signature of all files as OpenSSF Model Signing v1.0 defines it."""
    from strata_cli.commands.sign import sign_path as command

    return command(path, key=key, certificates=cert, out=out, json_output=json)


@app.command(short_help="A trained language model as a folder for transformers, or as GGUF.")
def export(
    path: Annotated[str, typer.Argument(metavar="MODEL", help="A run, a checkpoint, or a folder of a Llama.")],
    to: Annotated[Literal["hf", "gguf"], typer.Option("--to", help="The format: for transformers, or for llama.cpp.")],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="The folder to make; must not exist.")],
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16"] | None, typer.Option(help="Of the weights; default: as stored.")
    ] = None,
    max_shard_size: Annotated[
        str, typer.Option(metavar="SIZE", help="Most bytes of weights in a file, such as 500MB or 2GiB (hf).")
    ] = "5GB",
    start_from: Annotated[
        str | None,
        typer.Option("--from", metavar="latest|best|STEP", help="Which checkpoint of a run; default: best, or latest."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Write the causal part of a language model so that others can load it, with its tokenizer, card and manifest."""
    from strata_cli.commands.export import export as command

    return command(
        path,
        to=to,
        out=out,
        dtype=dtype,
        max_shard_size=max_shard_size,
        start_from=start_from,
        json_output=json,
        quiet=quiet,
    )


@recipes.command("list", short_help="List the shipped recipes.")
def list_recipes(json: Json = False) -> int:
    """List the shipped recipes, each with what it is for."""
    from strata_cli.commands import recipes as commands

    return commands.list_recipes(json_output=json)


RecipeName = Annotated[
    str, typer.Argument(metavar="NAME", help="A recipe's name, or a path.", autocompletion=completion.all_recipes)
]


@recipes.command("show", short_help="Print a recipe.")
def show_recipe(
    name: RecipeName,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Every setting with its value, instead of the file as written.")
    ] = False,
    json: Json = False,
) -> int:
    """Print a recipe as it is written, or every setting of it with --resolved."""
    from strata_cli.commands import recipes as commands

    return commands.show_recipe(name, resolved=resolved, json_output=json)


@recipes.command("copy", short_help="Copy a shipped recipe to change it.")
def copy_recipe(
    name: RecipeName, destination: Annotated[str, typer.Argument(metavar="DEST", help="A file or a folder.")]
) -> int:
    """Copy a recipe to a file or into a folder; nothing is overwritten."""
    from strata_cli.commands import recipes as commands

    return commands.copy_recipe(name, destination)


@recipes.command("check", short_help="Find every fault in a recipe.")
def check_recipe(path: RecipeName, json: Json = False) -> int:
    """Check a recipe without starting anything: every fault at once, with file, line and key."""
    from strata_cli.commands import recipes as commands

    return commands.check_recipe(path, json_output=json)


@recipes.command("schema", short_help="Print the JSON Schema of a kind of recipe.")
def print_schema(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="lm, graph or corpus.", autocompletion=completion.recipe_kinds)
    ],
) -> int:
    """Print the JSON Schema of a kind of recipe, for editors."""
    from strata_cli.commands import recipes as commands

    return commands.print_schema(kind)


@app.command(short_help="Versions, devices, threads and memory, as a bug report needs them.")
def env(json: Json = False) -> int:
    """Print versions, devices, threads and memory: what a bug report needs."""
    from strata_cli.commands.env import env as command

    return command(json_output=json)

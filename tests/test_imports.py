"""What imports what: rooms without torch, a library that knows no command, and no circles."""

import ast
import functools
import graphlib
import pkgutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import strata_cli
import strata_core

NO_TORCH_ROOMS = ("recipes", "manifest", "audit", "attestation")
"""Every module of these rooms."""

NO_TORCH_MODULES = (
    "strata_core.errors",
    "strata_core.files",
    "strata_core.observer",
    "strata_core.randomness",
    "strata_core.corpus.preparing.preparation",
    "strata_core.corpus.reading",
    "strata_core.export.format",
)


def modules_under(package_path, prefix: str) -> list[str]:
    names = (module.name for module in pkgutil.walk_packages(package_path, prefix))
    return sorted(name for name in names if not name.endswith("__main__"))


def no_torch_modules() -> list[str]:
    core = modules_under(strata_core.__path__, "strata_core.")
    rooms = tuple(f"strata_core.{room}" for room in NO_TORCH_ROOMS)
    return [*NO_TORCH_MODULES, *(name for name in core if name.startswith(rooms))]


def loaded_after(imports: list[str], asked: tuple[str, ...]) -> set[str]:
    code = f"import sys\nfor name in {imports!r}: __import__(name)\nprint(*[m for m in {asked!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_modules_without_torch_do_not_load_it():
    assert loaded_after(no_torch_modules(), ("torch",)) == set()


def test_the_command_line_loads_nothing_heavy_when_imported():
    heavy = ("torch", "numpy", "tokenizers", "pydantic", "safetensors")
    commands = [name for name in modules_under(strata_cli.__path__, "strata_cli.") if "commands" not in name]
    assert loaded_after(commands, heavy) == set()


def test_no_command_module_loads_torch_when_imported():
    assert loaded_after(modules_under(strata_cli.__path__, "strata_cli."), ("torch",)) == set()


def imports_in(source: str) -> set[tuple[str, str]]:
    """What a source imports at any level, in functions and for type checkers too: (module, name taken of it or "")."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are written in full"
            found |= {(node.module, alias.name) for alias in node.names}
    return found


def module_sources(package_folder: Path) -> dict[str, str]:
    """The sources of a package and all below it, by the modules' full names."""
    names = {path: path.relative_to(package_folder.parent).with_suffix("") for path in package_folder.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path.read_text() for path, name in names.items()}


def import_graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules among `sources` that each imports; `from a import b` is a.b where that is a module, else a."""

    def meant(module: str, name: str) -> str:
        return f"{module}.{name}" if f"{module}.{name}" in sources else module

    return {
        importing: {meant(*imported) for imported in imports_in(source)} & sources.keys() - {importing}
        for importing, source in sources.items()
    }


def import_circle(graph: Mapping[str, set[str]]) -> list[str]:
    """A circle of imports, its first module named again at the end; empty where there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


@functools.cache
def own_sources() -> dict[str, str]:
    return module_sources(Path(strata_core.__path__[0])) | module_sources(Path(strata_cli.__path__[0]))


def test_no_imports_run_in_a_circle():
    assert import_circle(import_graph(own_sources())) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("from a.two import x", "import a.one"),
        ("from a import two", "def f():\n    from a.one import y"),
        ("import a.two", "if TYPE_CHECKING:\n    from a import one"),
    ],
    ids=["module level", "in a function", "for type checkers"],
)
def test_a_circle_of_imports_is_found_wherever_they_stand(first, second):
    graph = import_graph({"a": "", "a.one": first, "a.two": second})
    assert set(import_circle(graph)) == {"a.one", "a.two"}
    assert import_circle(import_graph({"a": "from a.one import x", "a.one": first, "a.two": "import os"})) == []


@pytest.mark.parametrize("name", ["strata_cli", "typer", "rich", "click"])
def test_no_source_of_the_library_imports(name):
    sources = module_sources(Path(strata_core.__path__[0]))
    imported = set().union(*map(imports_in, sources.values()))
    assert name not in {module.partition(".")[0] for module, _ in imported}


def test_the_library_never_prints():
    for path in Path(strata_core.__path__[0]).rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        assert "print" not in names, path


ROOMS = (
    ("errors", "dotted", "observer", "randomness"),
    ("files",),
    ("manifest",),
    ("audit", "attestation"),
    ("corpus",),
    ("recipes",),
    ("models",),
    ("objectives",),
    ("evaluation",),
    ("training",),
    ("tasks",),
    ("memory_fit",),
    ("inference",),
    ("export", "suites"),
    ("launch",),
    ("replay",),
)
"""The rooms of the library from the ground up: a room imports its own modules and those of rooms before it."""


def imported_modules(path: Path) -> set[str]:
    """Modules of the library that a source imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return {name for name in found if name.startswith("strata_core.")}


def test_no_room_of_the_library_imports_one_above_it():
    level = {room: number for number, rooms in enumerate(ROOMS) for room in rooms}
    root = Path(strata_core.__path__[0])
    upward = []
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0].removesuffix(".py")
        for name in imported_modules(path):
            above = name.split(".")[1]
            if room != "__init__" and above != room and level[above] >= level[room]:
                upward.append(f"{path.relative_to(root)} imports {name}")
    assert upward == []


def test_the_engine_and_those_above_the_tasks_know_no_single_task():
    root = Path(strata_core.__path__[0])
    shared = {"registry", "kind", "data", "input_file"}
    for room in ("training", "memory_fit", "inference", "launch", "replay"):
        for path in (root / room).rglob("*.py"):
            tasks = {name.split(".")[2] for name in imported_modules(path) if name.startswith("strata_core.tasks.")}
            assert tasks <= shared, path

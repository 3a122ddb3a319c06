"""The wheel, installed in an environment of its own outside the tree, finds its recipes."""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "strata.py", "strata_core", "strata_cli", "recipes")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy of the sources, so that nothing is left in the tree."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    source = tmp_path_factory.mktemp("source")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", source / "dist", source]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The interpreter of a new environment with the wheel in it; what strata depends on comes from this environment."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    command = [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--no-deps", "--no-index"]
    subprocess.run([*command, "--disable-pip-version-check", wheel], check=True, capture_output=True)
    dependencies = Path(pytest.__file__).resolve().parents[1]
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    return home / "bin" / "python"


def output_of(*command, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def test_the_wheel_lists_the_recipes_of_the_tree_from_its_own_copy(installed, tmp_path):
    found = json.loads(output_of(installed, "-m", "strata", "recipes", "list", "--json", cwd=tmp_path))["recipes"]
    in_tree = {path.relative_to(ROOT / "recipes").with_suffix("").as_posix() for path in ROOT.glob("recipes/**/*.toml")}
    assert {recipe["name"] for recipe in found} == in_tree
    assert all(Path(recipe["path"]).is_relative_to(installed.parents[1]) for recipe in found)


def test_the_wheel_checks_a_shipped_recipe_and_installs_the_command(installed, tmp_path):
    assert "ok" in output_of(installed.parent / "strata", "recipes", "check", "lm/small", cwd=tmp_path)


def test_the_tree_finds_its_recipes_where_they_lie(tmp_path):
    found = json.loads(output_of(sys.executable, "-m", "strata", "recipes", "list", "--json", cwd=ROOT))["recipes"]
    assert all(Path(recipe["path"]).is_relative_to(ROOT / "recipes") for recipe in found)

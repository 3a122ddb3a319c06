"""What a run is: recipes in TOML, found by name, merged, checked, completed and written back.

Imports without torch. Each name is imported when it is first used, since shell completion wants a few of them at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strata_core.recipes.changes import RESUMABLE_KEYS, changed_keys, check_resumable
    from strata_core.recipes.keys import key_names
    from strata_core.recipes.loading import load_any_recipe, load_recipe, load_training_recipe
    from strata_core.recipes.names import find_recipe, list_recipes
    from strata_core.recipes.writing import dump_recipe, recipe_digest, recipe_tables

__all__ = [
    "RESUMABLE_KEYS",
    "changed_keys",
    "check_resumable",
    "dump_recipe",
    "find_recipe",
    "key_names",
    "list_recipes",
    "load_any_recipe",
    "load_recipe",
    "load_training_recipe",
    "recipe_digest",
    "recipe_tables",
]

_MODULES = {
    "changes": ("RESUMABLE_KEYS", "changed_keys", "check_resumable"),
    "keys": ("key_names",),
    "loading": ("load_any_recipe", "load_recipe", "load_training_recipe"),
    "names": ("find_recipe", "list_recipes"),
    "writing": ("dump_recipe", "recipe_digest", "recipe_tables"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"strata_core.recipes.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

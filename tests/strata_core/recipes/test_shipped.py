"""Shipped recipes are of the size that their headers promise."""

import pytest

from strata_core.recipes import find_recipe, list_recipes, load_recipe


def parameters(name: str, vocab_size: int) -> int:
    """Weights of a transformer with tied embeddings, SwiGLU, grouped-query attention and RMSNorm, counted by hand."""
    model = load_recipe(name).model
    width = model.d_model
    attention = 2 * width * width + 2 * width * (width // model.n_heads * model.n_kv_heads)
    block = attention + 3 * width * model.d_ff + 2 * width
    return vocab_size * width + model.n_layers * block + width


@pytest.mark.parametrize(
    ("name", "vocab_size", "least", "most"),
    [
        ("quickstart", 4096, 1.0e6, 2.0e6),
        ("lm/small", 8192, 8.5e6, 9.5e6),
        ("lm/base", 50257, 120e6, 130e6),
        ("lm/1b", 32000, 1.0e9, 1.2e9),
    ],
)
def test_a_recipe_has_about_the_parameters_its_header_says(name, vocab_size, least, most):
    assert least <= parameters(name, vocab_size) <= most


def test_the_largest_recipe_groups_its_queries():
    model = load_recipe("lm/1b").model
    assert model.n_kv_heads < model.n_heads


@pytest.mark.parametrize("name", list_recipes())
def test_every_recipe_says_what_it_is_for_what_it_needs_and_what_to_expect(name):
    header = "".join(line for line in find_recipe(name).read_text().splitlines(True) if line.startswith("#"))
    assert all(f"# {heading}:" in header for heading in ("For", "Needs", "Expect"))

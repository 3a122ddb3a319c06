"""The strata library: corpora, recipes, models, training, manifests and audits."""

__version__ = "0.1.0"

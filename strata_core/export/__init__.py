"""Trained language models in the formats of others. A format is one module, which the registry names."""

"""Corpora: raw input turned into a directory of token shards, and such a directory read back."""

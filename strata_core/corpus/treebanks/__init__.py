"""Annotated sentences: the formats treebanks come in, and how a corpus holds them."""

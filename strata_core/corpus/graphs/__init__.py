"""Graphs with questions: the formats they come in, and how a corpus holds them."""

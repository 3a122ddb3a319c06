"""Queries over many small graphs."""

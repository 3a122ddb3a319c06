"""Queries over one large graph."""

"""Proof by training again."""

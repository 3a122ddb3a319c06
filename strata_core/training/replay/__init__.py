"""Proof by replay: a stretch of a run trained again, and held against what the run claims."""

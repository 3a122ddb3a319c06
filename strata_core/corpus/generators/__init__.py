"""Seeded synthetic corpora: every example is a pure function of (seed, index)."""

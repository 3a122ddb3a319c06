"""Pickles, read as data: what a stream would do, and whether that is safe."""

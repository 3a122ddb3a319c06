"""Runs started and resumed, in one process or on many ranks."""

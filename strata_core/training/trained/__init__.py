"""Trained models found again: by a run or a checkpoint, with their settings, on data."""

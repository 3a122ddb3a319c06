"""Trained models at work: evaluated on a split, asked about a file."""

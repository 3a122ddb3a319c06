"""A run on disk: its folder, its records, and what its manifest says about how it was made."""

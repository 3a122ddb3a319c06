"""Models that reason over graphs, and what they are made of."""

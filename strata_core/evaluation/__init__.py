"""Measures of predictions against what is right; numpy alone."""

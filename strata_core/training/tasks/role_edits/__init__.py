"""Role edits: examples, their losses, and what is measured of them."""

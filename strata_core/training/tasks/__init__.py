"""What a kind of model supplies to the engine."""

"""The language model that is supervised by linguistic structure."""

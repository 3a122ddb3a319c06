"""The formats that checkpoints come in, one file each, read as data."""

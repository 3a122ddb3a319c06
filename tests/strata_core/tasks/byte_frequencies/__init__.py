"""How often does each byte come? A task small enough to read in a minute, for tests of what any task can do."""

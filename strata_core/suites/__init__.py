"""Suites of grammar: what a language model finds likelier, read from files of the field and scored."""

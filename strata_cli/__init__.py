"""The strata command: arguments in, library calls, tables and JSON out."""

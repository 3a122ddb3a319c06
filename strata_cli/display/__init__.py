"""What people see: streams, colour, errors, progress and tables."""

"""One engine that trains both kinds of model, and what it is made of. Importing this package alone loads no torch."""

"""The label that relates two nodes, from the paths between them."""

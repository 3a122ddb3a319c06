"""Ranks started on this node: through torch's elastic agent or by Slurm, and how launcher and ranks talk."""

"""Proof that travels: signatures over a folder, and statements about what was verified, in the formats of others."""

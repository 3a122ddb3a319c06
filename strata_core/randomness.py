"""Keyed randomness: everything random in strata is a pure function of a seed, a purpose and some indices.

There is no generator state to save, restore or lose: whoever needs random numbers derives a seed from the key and
starts a generator with it.
"""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, purpose: str, *indices: int) -> int:
    """A seed that depends on the whole key and on nothing else.

    Args:
        seed: the run's seed.
        purpose: what the numbers are for ("dropout", "order", ...), so that two uses never share a stream.
        indices: integers that place the use (step, epoch, micro-batch, ...), in a fixed order.

    Returns:
        An integer in [0, 2**63), uniform over keys (BLAKE2b of the key's canonical text).
    """
    key = "\x1f".join([str(int(seed)), purpose, *(str(int(index)) for index in indices)])
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1

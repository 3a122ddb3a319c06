"""Copies many tensors at once, as fast as memory allows while other threads want the processors too."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

_PIECE_BYTES = 4 << 20


def copy_all(pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Copies the second tensor of each pair into the first.

    Contiguous host tensors are cut into pieces that threads take as they come free: torch's own copy gives each thread
    a fixed share and waits for the slowest, which takes several times as long where something else holds a core.
    Copies from a device are only queued, in order with its later work.

    Args:
        pairs: destination and source, of one shape and dtype each; destinations do not overlap.
    """
    pieces: list[tuple[np.ndarray, np.ndarray]] = []
    for destination, source in pairs:
        if _is_plain(destination) and _is_plain(source):
            pieces += zip(_pieces(destination), _pieces(source), strict=True)
        else:
            destination.copy_(source, non_blocking=source.is_cuda)
    if len(pieces) <= 1:
        for piece in pieces:
            np.copyto(*piece)
        return
    with ThreadPoolExecutor(min(len(pieces), torch.get_num_threads()), thread_name_prefix="copy") as pool:
        for _ in pool.map(lambda piece: np.copyto(*piece), pieces):
            pass


def _is_plain(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _pieces(tensor: Tensor) -> list[np.ndarray]:
    data = tensor.detach().reshape(-1).view(torch.uint8).numpy()
    return [data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES)]

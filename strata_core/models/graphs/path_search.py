"""The model's own search for paths: a beam over edges that the next-hop scores rank.

All branches of a batch are searched at once, in tensors of fixed shape; nothing is learned through it.

Shapes: S branches, W beam width, T steps, M nodes, F edges, O edges that leave a node.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_NOWHERE = -1e9
"""Score of what is no path."""


@torch.no_grad()
def search_paths(
    score_edges: Callable[[int, Tensor], Tensor],
    starts_S: Tensor,
    lengths_S: Tensor,
    out_edges_MO: Tensor,
    edges_F3: Tensor,
    *,
    width: int,
    n_steps: int,
) -> tuple[Tensor, Tensor]:
    """The best paths of each branch's number of steps.

    Args:
        score_edges: from a step's number and edges, int64 [S, W, O], to float scores of the same shape.
        starts_S: node that each branch starts from.
        lengths_S: steps of each branch.
        out_edges_MO: edges that leave each node, F where there are no more.
        edges_F3: source, relation, destination.
        width: W, how many paths are kept.
        n_steps: T.

    Returns:
        int64 [S, W, T], edges, F behind a path's end; bool [S, W], whether there is such a path.
    """
    n_edges, n_branches = edges_F3.shape[0], starts_S.shape[0]
    destinations = torch.cat([edges_F3[:, 2], edges_F3.new_zeros(1)])
    nodes_SW = starts_S[:, None].expand(-1, width)
    scores_SW = starts_S.new_full((n_branches, width), 0, dtype=torch.float32)
    scores_SW[:, 1:] = _NOWHERE
    paths_SWT = starts_S.new_full((n_branches, width, n_steps), n_edges)
    for step in range(n_steps):
        leaving_SWO = out_edges_MO[nodes_SW]
        scores_SWO = scores_SW[..., None] + score_edges(step, leaving_SWO).float()
        scores_SWO = torch.where(leaving_SWO == n_edges, _NOWHERE, scores_SWO)
        best_SW, place_SW = scores_SWO.flatten(1).topk(width, dim=1)
        from_SW = place_SW // leaving_SWO.shape[2]
        edge_SW = leaving_SWO.flatten(1).gather(1, place_SW)
        longer_SWT = paths_SWT.gather(1, from_SW[..., None].expand_as(paths_SWT)).clone()
        longer_SWT[..., step] = edge_SW
        walking_S1 = (lengths_S > step)[:, None]
        paths_SWT = torch.where(walking_S1[..., None], longer_SWT, paths_SWT)
        scores_SW = torch.where(walking_S1, best_SW.clamp(min=_NOWHERE), scores_SW)
        nodes_SW = torch.where(walking_S1, destinations[edge_SW], nodes_SW)
    found_SW = scores_SW > _NOWHERE / 2
    return torch.where(found_SW[..., None], paths_SWT, n_edges), found_SW
